"""A GPU for the tests of this folder: one that NumPy stands in for, or a real one.

``NDX_TEST_CUDA=1`` (`make test-cuda`) takes a real one. Without a driver these tests
skip; where there is one and CuPy, or a GPU, is missing all the same, they fail.
"""

import contextlib
import functools
import gc
import os
import shutil

import pytest
from ndx._cuda.bridge import address_of

import ndx
from ndx import backends
from ndx.backends import _cupy

from .stand_in import modules, plans, standin

REAL = os.environ.get("NDX_TEST_CUDA") == "1"


@pytest.fixture(scope="session")
def stand_in():
    """Return a stand-in for CuPy, and array_api_compat's functions on its arrays."""
    return modules.stand_in()


@pytest.fixture
def gpu(request):
    """Let there be a GPU; return its machine, None where it is a real one."""
    failed = functools.partial(request.node.stash.get, FAILED, False)
    if REAL:
        check_real()
        with as_if_first(failed, finish_real):
            yield None
        return
    with modules.in_place():
        standin.machine.default_mallocs = 0
        with as_if_first(failed, finish_stand_in):
            yield standin.machine
        standin.machine.calls.clear()


def check_real():
    """Skip or fail where there is no GPU that CuPy can use."""
    if _cupy.count_devices():
        return
    with pytest.raises(ndx.DeviceError) as missing:
        _cupy.load()
    if shutil.which("nvidia-smi") is None:
        pytest.skip(f"there is no NVIDIA driver. {missing.value}")
    pytest.fail(f"there is an NVIDIA driver, but: {missing.value}", pytrace=False)


def finish_stand_in():
    plans.get_plan_cache().clear()
    standin.machine.finish_all()


def finish_real():
    # Plans have memory of ours.
    _cupy.load().fft.config.get_plan_cache().clear()
    ndx.synchronize()


@contextlib.contextmanager
def as_if_first(failed, finish):
    """Let a test find no memory of GPUs, as the first one does, and leave none.

    Parameters
    ----------
    failed : callable
        Whether the test has failed: then its arrays live on, in the traceback.
    finish : callable
        Waits for the GPUs.
    """
    take_shared()
    yield
    ndx.memory.destroy_all()
    gc.collect()
    finish()
    for backend in take_shared():
        if not failed():
            live = backend.stats()["allocated_bytes"]
            assert live == 0, f"live memory of {backend.name}: {live} bytes"


def take_shared():
    """Return the shared backends of GPUs, and let new ones be made."""
    return [
        backends._registry._shared.pop(name)
        for name in list(backends._registry._shared)
        if name.startswith("cuda") or name == "pinned"
    ]


def made_or_skip(make, *args, **options):
    """Make a backend; skip where a GPU can't have it: its error is the reason."""
    try:
        return make(*args, **options)
    except ndx.DeviceError as missing:
        pytest.skip(str(missing))


def check_that_release_waits(machine, stand_in):
    """Check that memory which two streams use is free after both; return them."""
    a, b = stand_in[0].cuda.Stream(), stand_in[0].cuda.Stream()
    with a:
        x = ndx.ones(1 << 17)
    with b:
        x + 1
    machine.calls.clear()
    place = address_of(x)
    del x
    # An event of the one that read it, too, and no one waits on the CPU.
    assert ("eventRecord", b.ptr) in machine.calls
    assert not any("ynchronize" in call[0] for call in machine.calls)
    with a:
        y = ndx.ones(1 << 17)
    reused = address_of(y) == place
    assert not reused or ("streamWaitEvent", a.ptr, b.ptr) in machine.calls
    return a, b


@pytest.fixture
def machine(gpu):
    """The machine that NumPy stands in for: what it was asked, and what it holds.

    CUDA does not tell that. `make test` skips none of these tests.
    """
    if gpu is None:
        pytest.skip("CUDA does not tell what it was asked: a stand-in does")
    # What goes later, of other tests, asks CUDA, too: garbage, and idle memory.
    gc.collect()
    ndx.memory.empty_cache()
    gpu.calls.clear()
    return gpu


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report

"""A GPU for the tests of this folder: one that NumPy stands in for, or a real one.

``NDX_TEST_CUDA=1`` (`make test-cuda`) takes a real one, and skips where there is none.
"""

import contextlib
import gc
import importlib
import os
import sys
import types

import pytest

import ndx
from ndx import _cupy, backends

from . import arrays, cublas, standin

REAL = os.environ.get("NDX_TEST_CUDA") == "1"


@contextlib.contextmanager
def modules(replacements):
    """Let names of modules stand for others, while something is imported."""

    def ours(name):
        return name.split(".")[0] == "cupy" or name.startswith("array_api_compat.cupy")

    before = {name: sys.modules.pop(name) for name in list(sys.modules) if ours(name)}
    sys.modules.update(replacements)
    try:
        yield
    finally:
        for name in list(sys.modules):
            if ours(name):
                del sys.modules[name]
        sys.modules.update(before)


@pytest.fixture(scope="session")
def stand_in():
    """Return a stand-in for CuPy, and array_api_compat's functions on its arrays."""
    module = arrays.module()
    device = types.ModuleType("cupy.cuda.device")
    device.Device = standin.Device
    with modules({
        "cupy": module, "cupy.cuda": module.cuda, "cupy.linalg": module.linalg,
        "cupy.fft": module.fft, "cupy.cuda.device": device,
    }):  # fmt: skip
        functions = importlib.import_module("array_api_compat.cupy")
    # Where the real one is recognised by its type.
    arrays.ndarray.__array_namespace__ = lambda self, **kwargs: functions
    return module, functions


@pytest.fixture
def gpu(request):
    """Let there be a GPU; return its machine, None where it is a real one."""
    if REAL:
        if not _cupy.count_devices():
            with pytest.raises(ndx.DeviceError) as missing:
                _cupy.load()
            pytest.skip(str(missing.value))
        yield None
        return
    module, functions = request.getfixturevalue("stand_in")
    with _cupy.replaced(module, functions, cublas.LIBRARY):
        standin.machine.default_mallocs = 0
        yield standin.machine
        module.fft.config.get_plan_cache().clear()
        ndx.memory.destroy_all()
        gc.collect()
        standin.machine.finish_all()
        for name in ("cuda:0", "cuda:1", "cudahost:0", "cudammap:0", "pinned"):
            backend = backends._shared.pop(name, None)
            if backend is not None and not request.node.stash.get(FAILED, False):
                assert backend.stats()["allocated_bytes"] == 0, f"live memory of {name}"
        del backend
        standin.machine.calls.clear()


@pytest.fixture
def machine(gpu):
    """The machine that NumPy stands in for: what it was asked, and what it holds.

    CUDA does not tell that. `make test` skips none of these tests.
    """
    if gpu is None:
        pytest.skip("CUDA does not tell what it was asked: a stand-in does")
    gpu.calls.clear()
    return gpu


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report

"""Arrays that other processes open: ndx.cuda.share."""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx._cuda import sharing

from .conftest import REAL, made_or_skip

MIB = 1 << 20

pytestmark = pytest.mark.skipif(
    not hasattr(os, "memfd_create"), reason="CUDA's memory is shared on Linux only"
)

# What each other process does: `main` gets what was sent, and its result is sent back.
PROGRAM = """
import contextlib, gc, pickle, sys
import numpy as np
import ndx
from ndx._cuda import sharing
from tests.cuda.stand_in import modules, standin

{main}

with contextlib.nullcontext() if {real} else modules.in_place():
    while True:
        try:
            sent = pickle.load(sys.stdin.buffer)
        except EOFError:
            break
        try:
            found = main(*sent)
        except ndx.DeviceError as error:
            found = str(error)
        gc.collect()
        sys.stdout.buffer.write(pickle.dumps(found))
        sys.stdout.buffer.flush()
        del found, sent
"""
LOOK = """
def main(*handles):
    arrays = [handle.open() for handle in handles]
    found = [(np.asarray(x.to_device("cpu")).copy(), x.strides, str(x.device),
              x.flags.writeable) for x in arrays]
    return found, len(sharing._mapped)
"""


class Other:
    """Another process, which answers what it is sent."""

    def __init__(self, main):
        program = PROGRAM.format(main=main, real=REAL)
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", program],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def send(self, *values):
        self.process.stdin.write(pickle.dumps(values))
        self.process.stdin.flush()

    def receive(self):
        return pickle.load(self.process.stdout)

    def ask(self, *values):
        self.send(*values)
        return self.receive()

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()


@pytest.fixture(scope="module")
def process():
    """Start other processes, which end with the tests of this file."""
    started = {}

    def find(main):
        if main not in started:
            started[main] = Other(main)
        return started[main]

    yield find
    for other in started.values():
        other.end()


def test_another_process_sees_it(gpu, process):
    x = ndx.reshape(ndx.arange(12.0, device="cuda:0"), (3, 4))
    with ndx.cuda.share(x) as handle:
        assert len(pickle.dumps(handle)) < 500
        ((found, strides, device, writeable),), mapped = process(LOOK).ask(handle)
        assert np.array_equal(found, np.arange(12.0).reshape(3, 4))
        assert (strides, device, writeable, mapped) == (x.strides, "cuda:0", True, 1)
        # It sees what is written meanwhile.
        x += 1
        ndx.synchronize()
        ((found, *_),), _ = process(LOOK).ask(handle)
        assert found[0, 0] == 1.0


def test_it_writes_to_the_same_memory(gpu, process):
    other = process("""
def main(handle):
    x = handle.open()
    x[1:3] = 7.0
    ndx.synchronize("cuda:0")
""")
    x = ndx.zeros(5, device="cuda:0")
    with ndx.cuda.share(x) as handle:
        assert other.ask(handle) is None
    assert x.tolist() == [0.0, 7.0, 7.0, 0.0, 0.0]


@given(
    st.integers(0, 3), st.sampled_from([-2, -1, 1, 2]),
    st.sampled_from(["float32", "int64", "complex64", "bool"]), st.booleans(),
)  # fmt: skip
@examples(15)
def test_views(gpu, process, start, step, dtype, transposed):
    x = ndx.reshape(ndx.arange(30, device="cuda:0"), (6, 5))
    x = ndx.astype(x, dtype)
    view = (x.T if transposed else x)[start:, ::step]
    with ndx.cuda.share(view) as handle:
        ((found, strides, _, _),), _ = process(LOOK).ask(handle)
    assert found.dtype == view.dtype
    assert strides == view.strides
    assert np.array_equal(found, np.asarray(view.to_device("cpu")))


def test_arrays_of_one_range_have_one_mapping(gpu, process):
    with ndx.use("cuda:0", limit="64MiB"):
        small = [ndx.full(100, float(i)) for i in range(4)]
        large = ndx.full(4 * MIB, 9.0)
    handles = [ndx.cuda.share(x) for x in (*small, small[1][10:20], large)]
    found, mapped = process(LOOK).ask(*handles)
    assert [each[0][0] for each in found] == [0.0, 1.0, 2.0, 3.0, 1.0, 9.0]
    assert mapped == 2
    # They ended with the last array.
    count = process("def main(*handles): return len(sharing._mapped)")
    assert count.ask(*handles) == 0
    _, mapped = process(LOOK).ask(handles[0])
    assert mapped == 1


def test_read_only_arrays_stay_so(gpu, process):
    x = ndx.ones(3, device="cuda:0")
    x.flags.writeable = False
    with ndx.cuda.share(x) as handle:
        ((_, _, _, writeable),), _ = process(LOOK).ask(handle)
    assert not writeable


def test_no_elements(gpu):
    with pytest.raises(ndx.DeviceError, match="lets no other process open"):
        ndx.cuda.share(ndx.zeros((3, 0), device="cuda:0"))


def test_it_waits_for_the_owners_work(machine, process):
    with ndx.use("pinned"):
        source = ndx.full(1000, 3.0)
    x = source.to_device("cuda:0")  # a copy that is made late
    other = process(LOOK)
    with ndx.cuda.share(x) as handle:
        other.send(handle)
        # It waits on its own GPU until this one has come so far.
        ndx.synchronize("cuda:0")
        ((found, *_),), _ = other.receive()
        assert found.tolist() == [3.0] * 1000


def test_it_keeps_the_memory(gpu, process):
    with ndx.use("cuda:0", limit="4MiB") as backend:
        x = ndx.full(1000, 5.0)
        handle = ndx.cuda.share(x)
        del x
        gc.collect()
        assert backend.stats()["allocated_count"] == 1
        for _ in range(5):
            y = ndx.zeros(1000)
        ((found, *_),), _ = process(LOOK).ask(handle)
        assert found.tolist() == [5.0] * 1000
        handle.close()
        handle.close()
        assert "closed" in repr(handle)
        del y
        assert backend.stats()["allocated_count"] == 0
        with pytest.raises(ValueError, match="is closed"):
            pickle.dumps(handle)
        # Dropped, it lets go, too.
        ndx.cuda.share(ndx.ones(3))
        gc.collect()
        assert backend.stats()["allocated_count"] == 0
    assert gpu is None or not any(flags & 4 for flags in gpu.event_flags.values())


def test_an_array_in_a_workspace(gpu, process):
    with ndx.use("cuda:0", limit="16MiB"):
        ws = ndx.workspace("step", size="1MiB")
        with ws:
            ndx.zeros(100)
            x = ndx.full(1000, 4.0)
            handle = ndx.cuda.share(x)
        for _ in range(2):
            with ws:
                ndx.zeros(2000)
        # Its scope has ended; the handle keeps the bytes.
        with pytest.raises(ndx.StaleArrayError):
            ndx.cuda.share(x)
        ((found, *_),), _ = process(LOOK).ask(handle)
        assert found.tolist() == [4.0] * 1000
        handle.close()
        ws.destroy()


def test_memory_of_another_gpu(gpu, process):
    backend = made_or_skip(ndx.backends.get, "cudapeer:0", peer=1)
    with ndx.use(backend):
        x = ndx.full(10, 2.0)
    if gpu is None or (0, 1) in gpu.reaches:
        with ndx.cuda.share(x) as handle:
            ((found, _, device, _),), _ = process(LOOK).ask(handle)
        assert (found.tolist(), device) == ([2.0] * 10, "cuda:0")


def test_in_the_owners_process(gpu):
    with ndx.cuda.share(ndx.ones(3, device="cuda:0")) as handle:
        for each in (handle, pickle.loads(pickle.dumps(handle))):
            with pytest.raises(ndx.DeviceError, match="use the array itself"):
                each.open()
    assert "shape=(3,)" in repr(handle)


def test_the_owner_has_let_go(machine, process, monkeypatch):
    with ndx.use("cuda:0", limit="4MiB") as backend:
        handle = ndx.cuda.share(ndx.ones(3))
        with monkeypatch.context() as patch:
            # As in a process to which it was sent.
            patch.setattr(sharing, "_here", b"another")
            message = pickle.loads(pickle.dumps(handle))
            handle.close()
            backend.trim()
            assert "the owner must still run" in process(LOOK).ask(message)


def test_a_gpu_that_is_not_seen(machine, process):
    other = process("""
def main(handle):
    standin.machine.count = 1
    try:
        handle.open()
    finally:
        standin.machine.count = 2
""")
    with ndx.cuda.share(ndx.ones(3, device="cuda:1")) as handle:
        assert "PCI address 0000:01:00.0" in other.ask(handle)


@pytest.mark.parametrize("options", [{"source": "async"}, {"source": "managed"}])
def test_memory_that_can_not_be_opened(gpu, options):
    with ndx.use("cuda:0", **options):
        x = ndx.ones(3)
    with pytest.raises(ndx.DeviceError, match=r"source='pool' can be opened"):
        ndx.cuda.share(x)


def test_memory_of_others(gpu):
    with ndx.use("cudahost:0"):
        x = ndx.ones(3)
    with pytest.raises(ndx.DeviceError, match="lets no other process open"):
        ndx.cuda.share(x)
    foreign = ndx.from_dlpack(x)
    with pytest.raises(ndx.DeviceError, match="lets no other process open"):
        ndx.cuda.share(foreign)


def test_bad_arguments(gpu):
    with pytest.raises(TypeError, match="ndx.parallel.share"):
        ndx.cuda.share(ndx.ones(3, device="cpu"))
    with pytest.raises(TypeError, match="not int"):
        ndx.cuda.share(3)
    with ndx.use("cuda:0"), ndx.workspace("step"):
        x = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        ndx.cuda.share(x)
    ndx.workspace("step").destroy()


def test_a_graph_has_none(gpu):
    handle = ndx.cuda.share(ndx.ones(3, device="cuda:0"))

    @ndx.cuda.graph
    def step(x):
        ndx.cuda.share(x)
        return x + 1

    x = ndx.ones(3, device="cuda:0")
    step(x)
    with pytest.raises(ndx.DeviceError, match="can't be part of a captured graph"):
        step(x)
    handle.close()


def test_a_failure_changes_nothing(machine, monkeypatch):
    runtime = ndx.backends._cupy.load().cuda.runtime
    before = len(machine.events)

    def fail(*args):
        raise runtime.CUDARuntimeError(2)

    x = ndx.ones(3, device="cuda:0")
    count = x.backend.stats()["allocated_count"]
    with monkeypatch.context() as patch:
        patch.setattr(runtime, "ipcGetEventHandle", fail, raising=False)
        with pytest.raises(runtime.CUDARuntimeError):
            ndx.cuda.share(x)
    assert len(machine.events) == before
    del x
    assert ndx.backends.get("cuda:0").stats()["allocated_count"] == count - 1
    assert sharing._mapped == {}

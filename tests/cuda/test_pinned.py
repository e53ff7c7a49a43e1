"""Page-locked memory of the host: the pool, and what a GPU still reads of it."""

import gc
import os
import threading

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.numpy_versions import since

import ndx

MIB = 1 << 20


def counters(backend):
    stats = backend.stats()
    return stats["allocated_bytes"], stats["allocated_count"]


def address(x):
    with memoryview(x) as view:
        return np.frombuffer(view, "u1").ctypes.data


def test_it_is_the_cpus(gpu):
    with ndx.use("pinned") as backend:
        x = ndx.ones(3)
        y = x * 2
    assert (x.device, backend.device, backend.name) == ("cpu", "cpu", "pinned")
    assert backend is ndx.backends.get("pinned")
    assert backend.host_accessible
    assert y.backend is backend
    assert y.tolist() == np.asarray(y).tolist() == [2.0, 2.0, 2.0]
    assert counters(backend) == (48, 2)
    if gpu is not None:
        assert gpu.host_range(address(x), x.nbytes)
        flags = {call[2] for call in gpu.calls if call[0] == "hostAlloc"}
        assert flags == {3}  # portable, mapped
    del x, y
    assert counters(backend) == (0, 0)


def test_limits_trimming_and_refusals(gpu):
    before = 0 if gpu is None else gpu.host_held
    with ndx.use("pinned", limit="4MiB") as backend:
        x = ndx.zeros(3 * MIB, dtype="int8")
        assert not np.asarray(x).any()
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.zeros(2 * MIB, dtype="int8")
        assert backend.stats()["reserved_bytes"] <= 4 * MIB
        del x
        assert backend.trim() > 0
        assert backend.stats()["reserved_bytes"] == 0
    info = backend.memory_info()
    assert info[1] >= info[0] > 0
    if gpu is not None:
        assert gpu.host_held == before
        with (
            ndx.use("pinned"),
            pytest.raises(ndx.OutOfMemoryError, match="'pinned' can't allocate"),
        ):
            ndx.empty(gpu.host_total + 1, dtype="int8")


def test_memory_goes_back_with_the_backend(machine):
    before = machine.host_held
    with ndx.use("pinned", limit="8MiB"):
        x = ndx.ones(100_000)
        g = x.to_device("cuda:0")
        assert machine.host_held > before
    # The copy is not made yet; its source is gone when the backend is.
    del x
    gc.collect()
    assert machine.host_held == before
    assert float(ndx.sum(g)) == 100_000


def test_what_is_freed_is_not_reused_before_it_is_read(machine):
    with ndx.use("pinned", limit="64MiB") as backend:
        x = ndx.full(MIB, 1.0)
        machine.calls.clear()
        g = x.to_device("cuda:0")
        first = backend.largest_live()
        del x
        # The pool grows, and the CPU does not wait.
        y = ndx.full(MIB, 2.0)
        assert not any("ynchronize" in call[0] for call in machine.calls)
        assert counters(backend) == (8 * MIB, 1)
        assert first == backend.largest_live()
        where = address(y)
        del y
        ndx.synchronize()
        # Then it is used again, and the two are one free range.
        z = ndx.full(2 * MIB + 100, 3.0)
        assert backend.stats()["system_allocations"] <= 2
    assert float(ndx.min(g)) == float(ndx.max(g)) == 1.0
    del z, where


def test_looking_what_is_done_gives_no_stream_work(machine, stand_in):
    side = stand_in[0].cuda.Stream(non_blocking=True)
    with ndx.use("pinned", limit="64MiB"):
        x = ndx.full(MIB, 1.0)
        g = x.to_device("cuda:0", stream=side)
        del x
        machine.calls.clear()
        # An event on the default stream would wait for others, and hold them up.
        y = ndx.full(3 * MIB, 2.0)
        assert {call[0] for call in machine.calls} == {"hostAlloc"}
    ndx.synchronize("cuda:0")
    assert float(ndx.min(g)) == float(ndx.max(g)) == 1.0
    del g, y
    ndx.backends.get("cuda:0").close_stream(side.ptr)


def test_at_the_limit_the_cpu_waits(gpu):
    with ndx.use("pinned", limit="9MiB"):
        on_gpu = []
        for i in range(4):
            x = ndx.full(MIB, float(i))
            on_gpu.append(x.to_device("cuda:0"))
            del x
    assert [float(ndx.min(g)) for g in on_gpu] == [0.0, 1.0, 2.0, 3.0]
    assert [float(ndx.max(g)) for g in on_gpu] == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("pool", ["split", "round", "naive", "unpooled", "arena"])
def test_every_kind_of_pool(gpu, pool):
    with ndx.use("pinned", limit="32MiB", pool=pool) as backend:
        on_gpu = []
        for i in range(8):
            x = ndx.full(100_000, float(i))
            on_gpu.append(x.to_device("cuda:0"))
            del x
        assert counters(backend) == (0, 0)
        assert [float(ndx.sum(g)) for g in on_gpu] == [1e5 * i for i in range(8)]


WRITES = {
    "setitem": lambda x: x.__setitem__(..., 9.0),
    "in place": lambda x: x.__iadd__(8.0),
    "a view": lambda x: x[10:].__setitem__(..., 9.0),
    "numpy": lambda x: np.asarray(x).fill(9.0),
    "a buffer": lambda x: np.frombuffer(memoryview(x)).fill(9.0),
    "dlpack": lambda x: np.from_dlpack(x).fill(9.0),
    "the interface": lambda x: np.asarray(x.__array_interface__ and x).fill(9.0),
    "out": lambda x: ndx.add(x, 8.0, out=x),
    "sort of": lambda x: np.copyto(np.asarray(x), 9.0),
    "cleared": lambda x: x.close(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_who_changes_an_array_waits_for_its_copy(gpu, write):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        if gpu is not None:
            gpu.calls.clear()
        g = x.to_device("cuda:0")
        assert gpu is None or not any("ynchronize" in call[0] for call in gpu.calls)
        assert x.in_scope
        assert repr(x.shape) == "(1000,)"
        if write is WRITES["dlpack"] and not since("arrays from DLPack are writable"):
            pytest.skip("NumPy's array is read-only")
        write(x)
    assert g.tolist() == [1.0] * 1000


def test_two_copies_of_one_array_need_not_wait(gpu):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        if gpu is not None:
            gpu.calls.clear()
        g = x.to_device("cuda:0")
        h = x[500:].to_device("cuda:0")
        assert gpu is None or not any("ynchronize" in call[0] for call in gpu.calls)
        x += 1
    assert float(ndx.sum(g)) == 1000
    assert float(ndx.sum(h)) == 500
    assert float(ndx.sum(x)) == 2000


def test_views_that_others_have_are_waited_for(gpu):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        theirs = np.asarray(x)
        g = x.to_device("cuda:0")
        theirs[...] = 9.0
        # What lies in a workspace is used again when that says so.
        with ndx.workspace("step", size="64KiB") as ws:
            y = ndx.ones(1000)
            h = y.to_device("cuda:0")
        with ws:
            ndx.full(1000, 9.0)
        ws.destroy()
    assert g.tolist() == h.tolist() == [1.0] * 1000


def test_two_gpus_read_one_array(machine):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        a, b = x.to_device("cuda:0"), x.to_device("cuda:1")
        del x
        y = ndx.full(1000, 2.0)
        machine.finish_all()
        z = ndx.full(1000, 3.0)
    assert float(ndx.sum(a)) == float(ndx.sum(b)) == 1000.0
    assert float(ndx.sum(y)) + float(ndx.sum(z)) == 5000.0
    for name in ("cuda:0", "cuda:1"):
        ndx.synchronize(name)


@pytest.mark.threads
def test_threads_wait_for_one_copy(gpu):
    with ndx.use("pinned"):
        x = ndx.ones(100_000)
        g = x.to_device("cuda:0")
        found = []

        def work():
            found.append(float(ndx.sum(x)))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [100_000.0] * 4
    assert float(ndx.sum(g)) == 100_000.0


def test_a_fallback_is_looked_after_too(gpu):
    with ndx.use("pinned", limit=0, fallback="pinned") as backend:
        x = ndx.ones(1000)
        g = x.to_device("cuda:0")
        x += 1
    assert counters(backend) == (0, 0)
    assert g.tolist() == [1.0] * 1000


def test_events_do_not_pile_up(machine):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        for _ in range(100):
            x.to_device("cuda:0")
            machine.finish_all()
    before = len(machine.events)
    with ndx.use("pinned"):
        for _ in range(100):
            x.to_device("cuda:0")
            machine.finish_all()
    assert len(machine.events) == before


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_forked_child_refuses(gpu):
    with ndx.use("pinned"):
        x = ndx.ones(1000)
        x.to_device("cuda:0")
    child = os.fork()
    if not child:
        try:
            with ndx.use(x.backend):
                ndx.ones(100_000)
        except (ndx.DeviceError, RuntimeError) as error:
            del x
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert float(ndx.sum(x)) == 1000


PROGRAM = """
import sys
from tests.cuda.stand_in import arrays, standin
import ndx
from ndx.backends import _cupy

module = arrays.module()
_cupy.replaced(module, None).__enter__()
with ndx.use("pinned"):
    kept = ndx.ones(100_000)
    g = kept.to_device("cuda:0")
loop = [kept]
loop.append(loop)
standin.machine.calls.clear()

class AtTheVeryEnd:
    def __del__(self, calls=standin.machine.calls, write=sys.__stdout__.write):
        write(repr([call for call in calls if call[0] in ("freeHost", "free")]))

kept.backend  # it lives
standin.keep = AtTheVeryEnd()
"""


def test_at_exit_nothing_is_called():
    assert run_python(PROGRAM) in ("[]", "")

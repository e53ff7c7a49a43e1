"""Memory at reserved addresses: ndx.use("cuda:0", source="virtual")."""

import ctypes
import gc

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ndx._cuda.bridge import address_of

import ndx
from ndx.backends import _cupy

from .conftest import REAL, made_or_skip
from .stand_in import driver

MIB = 1 << 20
PAGE = 2 * MIB


@pytest.fixture(autouse=True)
def virtual(gpu):
    """Skip where a real GPU maps no memory; leave none of the stand-in's."""
    if gpu is None:
        made_or_skip(ndx.backends.CudaBackend, source="virtual")
        yield
        return
    yield
    driver.failing.clear()
    gc.collect()
    assert (gpu.pages, driver.handles) == ({}, {})


def counters(backend):
    stats = backend.stats()
    return stats["allocated_bytes"], stats["reserved_bytes"]


def test_arrays_are_as_others(gpu):
    with ndx.use("cuda:0", source="virtual") as backend:
        assert isinstance(backend.source, ndx.backends.CudaVirtualSource)
        assert backend.page_nbytes == backend.source.granularity >= PAGE
        x = ndx.ones(1000)
        assert (x.device, x.backend) == ("cuda:0", backend)
        assert float(ndx.sum(x * 2 + x)) == 3000.0
        assert not bool(ndx.any(ndx.zeros((512, 512))))
        assert x.to_device("cpu").tolist() == [1.0] * 1000
        large = ndx.full(PAGE, 2.0)  # of several pages
        assert float(ndx.max(large)) == float(ndx.min(large)) == 2.0
        del large, x
        assert counters(backend)[0] == 0
        assert backend.trim() > 0
        assert counters(backend) == (0, 0)
    assert gpu is None or all_mapped(gpu) == 0


def all_mapped(machine):
    return sum(len(pages) for pages in machine.pages.values())


def test_pages_go_back_between_arrays_that_live(machine):
    with ndx.use("cuda:0", source="virtual", limit="40MiB") as backend:
        arrays = [ndx.full(4 * MIB, i, dtype="int8") for i in range(8)]
        del arrays[1::2]
        assert all_mapped(machine) == 16
        # As much as the gaps: not one of them has room for it.
        x = ndx.full(20 * MIB, 9, dtype="int8")
        assert backend.stats()["reserved_bytes"] <= 40 * MIB
        assert all_mapped(machine) * PAGE == backend.stats()["reserved_bytes"]
        assert [int(each[-1]) for each in arrays] == [0, 2, 4, 6]
        assert int(ndx.min(x)) == int(ndx.max(x)) == 9
        # It was all in one range of addresses.
        ranges = {machine.reservation(address_of(each)) for each in (*arrays, x)}
        assert len(ranges) == 1


def test_free_memory_grows_in_place(machine):
    with ndx.use("cuda:0", source="virtual", limit="24MiB"):
        x = ndx.empty(8 * MIB, dtype="int8")
        address = address_of(x)
        del x
        y = ndx.empty(20 * MIB, dtype="int8")
        assert address_of(y) == address
        assert all_mapped(machine) == 10


def test_pages_wait_for_the_streams_that_used_them(machine, stand_in):
    a, b = stand_in[0].cuda.Stream(), stand_in[0].cuda.Stream()
    runtime = _cupy.load().cuda.runtime
    with ndx.use("cuda:0", source="virtual") as backend, a:
        x = ndx.full(MIB, 3.0)
    with ndx.use("pinned", limit="32MiB"):
        out = ndx.zeros(MIB)
    with b:
        x + 0
    # A copy that another stream makes late.
    runtime.memcpyAsync(address_of(out), address_of(x), x.nbytes, 4, b.ptr)
    del x
    machine.calls.clear()
    assert backend.trim(target="1KiB") == 0
    assert not any(call[0] == "cuMemUnmap" for call in machine.calls)
    assert backend.trim() >= MIB * 8
    names = [call[0] for call in machine.calls]
    assert names.index("streamSynchronize") < names.index("cuMemUnmap")
    assert out.tolist() == [3.0] * MIB
    for each in (a, b):
        backend.close_stream(each.ptr)


def test_what_is_left_waits_for_the_gpu(machine):
    runtime = _cupy.load().cuda.runtime
    with ndx.use("pinned", limit="32MiB"):
        out = ndx.zeros(MIB)
    with ndx.use("cuda:0", source="virtual") as backend:
        x = ndx.full(MIB, 3.0)
        runtime.memcpyAsync(address_of(out), address_of(x), x.nbytes, 4, 0)
    del x, backend
    gc.collect()
    assert out.tolist() == [3.0] * MIB
    assert all_mapped(machine) == 0


@pytest.mark.parametrize("pool", ["round", "naive", "unpooled", "arena"])
def test_other_pools(gpu, pool):
    with ndx.use("cuda:0", source="virtual", pool=pool, limit="32MiB") as backend:
        for _ in range(3):
            arrays = [ndx.full(MIB // 8, float(i)) for i in range(5)]
            assert [float(x[-1]) for x in arrays] == [0.0, 1.0, 2.0, 3.0, 4.0]
            del arrays
        assert backend.stats()["reserved_bytes"] <= 32 * MIB
    backend.trim()
    assert gpu is None or all_mapped(gpu) == 0


@given(st.lists(st.tuples(st.integers(1, 6 * MIB), st.booleans()), max_size=12))
@examples(25)
def test_any_sequence(gpu, requests):
    kept = []
    with ndx.use("cuda:0", source="virtual", limit="48MiB") as backend:
        for i, (nbytes, drops) in enumerate(requests):
            try:
                kept.append((i, ndx.full(nbytes, i, dtype="int8")))
            except ndx.OutOfMemoryError:
                assert sum(x.nbytes for _, x in kept) + nbytes > 32 * MIB
            if drops and kept:
                kept.pop(len(kept) // 2)
            if i % 5 == 4:
                backend.trim()
            assert counters(backend)[1] <= 48 * MIB
            if gpu is not None:
                assert all_mapped(gpu) * PAGE == counters(backend)[1]
        for i, x in kept:
            assert np.all(np.asarray(x.to_device("cpu")) == i)
            del x
    del kept, backend


def test_the_gpu_is_full(machine):
    with ndx.use("cuda:0", source="virtual"):
        x = ndx.empty(machine.total - 8 * MIB - machine.held[0], dtype="int8")
        mapped = all_mapped(machine)
        with pytest.raises(ndx.OutOfMemoryError, match="cuda:0"):
            ndx.empty(16 * MIB, dtype="int8")
        # What it had got of that went back.
        assert all_mapped(machine) == mapped
        y = ndx.empty(6 * MIB, dtype="int8")
    del x, y


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("cuMemAddressReserve", 2, ndx.OutOfMemoryError),
        ("cuMemAddressReserve", 304, ndx.DeviceError),
        ("cuMemCreate", 2, ndx.OutOfMemoryError),
        ("cuMemCreate", 101, ndx.DeviceError),
        ("cuMemMap", 1, ndx.DeviceError),
        ("cuMemSetAccess", 1, ndx.DeviceError),
    ],
)
@pytest.mark.parametrize("after", [0, 2])
def test_a_failure_changes_nothing(machine, name, status, error, after):
    with ndx.use("cuda:0", source="virtual") as backend:
        before = list(machine.held)

        def make_larger_and_larger():
            for calls in range(1, 9):
                ndx.empty(8 * MIB * calls, dtype="int8")
                backend.trim()

        driver.failing[name] = after, status
        with pytest.raises(error, match="cuda:0|of CUDA's driver failed") as caught:
            make_larger_and_larger()
        if error is ndx.DeviceError:
            assert f"{name} of CUDA's driver failed, with CUresult {status}" in str(
                caught.value)  # fmt: skip
        driver.failing.clear()
        del caught
        assert counters(backend) == (0, 0)
        assert machine.held == before
        x = ndx.ones(MIB)
        assert float(ndx.sum(x)) == MIB
        del x


def test_memory_that_does_not_go_back_is_used_again(machine):
    with ndx.use("cuda:0", source="virtual", limit="16MiB") as backend:
        x, kept = (ndx.empty(n * MIB, dtype="int8") for n in (8, 2))
        del x
        driver.failing["cuMemUnmap"] = 2, 1
        backend.trim()
        driver.failing.clear()
        assert all_mapped(machine) == 3
        y = ndx.full(8 * MIB, 3, dtype="int8")
        assert all_mapped(machine) == 5
        assert int(ndx.min(y)) == 3
        del y, kept
        backend.trim()
        assert all_mapped(machine) == 0


def test_where_it_can_not_be_had(machine, monkeypatch):
    monkeypatch.setattr(machine, "maps_memory", False)
    with pytest.raises(ndx.DeviceError, match=r"cuda:1.*source='pool'"):
        ndx.use("cuda:1", source="virtual")
    monkeypatch.delattr(driver.LIBRARY, "cuMemMap")
    with pytest.raises(ndx.DeviceError, match="too old, and has no cuMemMap"):
        ndx.use("cuda:0", source="virtual")
    driver.failing["cuDeviceGet"] = 0, 3
    monkeypatch.undo()
    with pytest.raises(ndx.DeviceError, match="cuDeviceGet .*failed, with CUresult 3"):
        ndx.use("cuda:0", source="virtual")


@pytest.mark.skipif(REAL, reason="it has a driver")
def test_no_driver(gpu, monkeypatch):
    monkeypatch.setattr(_cupy, "_driver", None)

    def fail(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", fail)
    with pytest.raises(ndx.DeviceError, match="can't be loaded as (libcuda|nvcuda)"):
        ndx.use("cuda:0", source="virtual")


PROGRAM = """
from tests.cuda.stand_in import modules
import ndx

modules.in_place().__enter__()
backend = ndx.backends.get("cuda:0", source="virtual")
with ndx.use(backend):
    kept = [ndx.ones(100_000), ndx.ones(10)]
del kept[1]
kept.append(kept)
"""


def test_at_exit_nothing_is_called():
    assert run_python(PROGRAM) == ""


def test_workspaces(gpu):
    with ndx.use("cuda:0", source="virtual", limit="32MiB"):
        ws = ndx.workspace("step", size="1MiB")
        for _ in range(3):
            with ws:
                assert float(ndx.sum(ndx.ones(1000))) == 1000.0
        ws.destroy()


def test_between_gpus(gpu):
    with ndx.use("cuda:0", source="virtual"):
        x = ndx.arange(1000)
    y = x.to_device("cuda:1")
    if gpu is not None:
        # It is the call that needs no access to the other GPU's memory.
        assert ("memcpyPeerAsync", 0) in gpu.calls
    assert y.to_device("cpu").tolist() == x.to_device("cpu").tolist()


def test_no_other_process_opens_it(gpu):
    with ndx.use("cuda:0", source="virtual"):
        x = ndx.ones(3)
    with pytest.raises(ndx.DeviceError, match="lets no other process open"):
        ndx.cuda.share(x)

"""CUDA's own pool as the source: ndx.use("cuda:0", source="async")."""

import gc

import pytest
from ndx._cuda.bridge import address_of as pointer

import ndx

from .conftest import made_or_skip

MIB = 1 << 20


def counters(backend):
    stats = backend.stats()
    return stats["allocated_bytes"], stats["allocated_count"]


@pytest.fixture(autouse=True)
def pools(gpu):
    """Skip where the driver of a real GPU has no pools."""
    if gpu is None:
        made_or_skip(ndx.backends.CudaBackend, source="async")


def test_a_driver_without_pools(machine, monkeypatch):
    monkeypatch.setattr(machine, "has_pools", False)
    for number in (0, 1):
        with pytest.raises(ndx.DeviceError, match=f"cuda:{number}.*source='pool'"):
            ndx.use(f"cuda:{number}", source="async")
    assert ndx.ones(3, device="cuda:0").tolist() == [1.0] * 3


def test_arrays_come_from_it(gpu):
    with ndx.use("cuda:0", source="async") as backend:
        x = ndx.ones(1000)
        y = ndx.sum(ndx.exp(x * 0) + x)
        assert float(y) == 2000.0
        assert counters(backend) == (8008, 2)
        assert backend.source.reserved >= 8008
        assert isinstance(backend.source, ndx.backends.CudaAsyncSource)
        assert not ndx.any(ndx.zeros(1000) != 0)
    if gpu is not None:
        names = {call[0] for call in gpu.calls}
        assert "mallocFromPoolAsync" in names
        assert not any("ynchronize" in call[0] for call in gpu.calls[:5])
        assert len(gpu.pools) == 1
    del x, y
    assert counters(backend) == (0, 0)
    assert backend.trim() > 0
    assert backend.source.reserved == 0
    del backend
    gc.collect()
    assert gpu is None or gpu.pools == {}


def test_a_free_does_not_wait(machine):
    with ndx.use("cuda:0", source="async"):
        x = ndx.ones(1000)
        address = pointer(x)
        machine.calls.clear()
        del x
        assert machine.calls == [("freeAsync", 0)]
        assert pointer(ndx.ones(1000)) == address


def test_it_is_freed_after_all_streams_that_used_it(machine, stand_in):
    stream = stand_in[0].cuda.Stream
    a, b = stream(), stream()
    with ndx.use("cuda:0", source="async") as backend:
        with a:
            x = ndx.full(1000, 3.0)
        pinned = ndx.use("pinned", limit="1MiB")
        with pinned:
            out = ndx.empty(1000)
        with b:
            y = x + 0
            machine.calls.clear()
            # A copy that is queued by the other stream, and done late.
            runtime = ndx.backends._cupy.load().cuda.runtime
            runtime.memcpyAsync(pointer(out), pointer(x), 8000, 4, b.ptr)
        del x
        assert ("eventRecord", b.ptr) in machine.calls
        assert ("streamWaitEvent", a.ptr, b.ptr) in machine.calls
        assert machine.calls[-1] == ("freeAsync", a.ptr)
        assert not any("ynchronize" in call[0] for call in machine.calls)
        machine.finish(a.ptr)
        assert out.tolist() == [3.0] * 1000
        del y
        for each in (a, b):
            backend.close_stream(each.ptr)


def test_a_range_for_another_stream(machine, stand_in):
    other = stand_in[0].cuda.Stream()
    backend = ndx.backends.CudaBackend(source="async")
    buffer = ndx.backends.Buffer(backend, 1000, stream=other.ptr)
    assert ("streamWaitEvent", other.ptr, 0) in machine.calls
    machine.calls.clear()
    buffer.release()
    assert [call[0] for call in machine.calls] == [
        "eventRecord", "streamWaitEvent", "freeAsync"]  # fmt: skip


def test_limits_and_workspaces(gpu):
    with ndx.use("cuda:0", source="async", limit="4MiB") as backend:
        x = ndx.empty(3 * MIB, dtype="int8")
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.empty(2 * MIB, dtype="int8")
        del x
        for _ in range(3):
            with ndx.workspace("step", size="1MiB") as ws:
                y = ndx.ones(1000)
                assert float(ndx.sum(y)) == 1000.0
        assert counters(backend) == (MIB, 1)
        ws.destroy()
        assert backend.stats()["peak_reserved_bytes"] <= 4 * MIB


def test_what_goes_with_it(gpu):
    for options in ({"pool": "arena"}, {"initial": "1MiB"}):
        with pytest.raises(ValueError, match="it takes no pool="):
            ndx.use("cuda:0", source="async", **options)
    with pytest.raises(ValueError, match="valid are 'pool', 'async'"):
        ndx.use("cuda:0", source="other")
    with pytest.raises(TypeError, match="has no option"):
        ndx.use("cudahost", source="async")


def test_the_gpu_is_full(gpu):
    total = ndx.memory.info("cuda:0").total
    with (
        ndx.use("cuda:0", source="async"),
        pytest.raises(ndx.OutOfMemoryError, match="cuda:0"),
    ):
        ndx.empty(total + 1, dtype="int8")

"""Memory of another GPU: ndx.use("cuda:0", fallback="cuda:1")."""

import pytest
from ndx._cuda.bridge import address_of

import ndx

from .conftest import check_that_release_waits, made_or_skip

MIB = 1 << 20


@pytest.fixture(autouse=True)
def peers(gpu):
    """Skip where no two real GPUs reach each other's memory."""
    if gpu is None:
        made_or_skip(ndx.backends.CudaPeerBackend)
        yield
        return
    reaches = set(gpu.reaches)
    gpu.reaches.clear()
    yield
    gpu.reaches.clear()
    gpu.reaches.update(reaches)


def test_the_fallback(gpu):
    n = MIB // 8
    with ndx.use("cuda:0", limit="4MiB", fallback="cuda:1") as backend:
        arrays = [ndx.full(n, float(i)) for i in range(8)]
        assert isinstance(backend.fallback, ndx.backends.CudaPeerBackend)
        assert (backend.fallback.device, backend.fallback.peer) == ("cuda:0", 1)
        assert {x.device for x in arrays} == {ndx.Device("cuda:0")}
        names = [x.backend.name for x in arrays]
        assert set(names) == {"cuda:0", "cudapeer:0"}
        for i, x in enumerate(arrays):
            assert float(ndx.sum(x + 1)) == n * (i + 1)
            assert x.to_device("cpu")[-1] == i
        # Zeros are written by the GPU whose array it is.
        assert not bool(ndx.any(ndx.zeros(n)))
        if gpu is not None:
            find = ndx.backends._cupy.load().cuda.runtime._device_of
            where = [find(address_of(x)) for x in arrays]
            assert where == [name == "cudapeer:0" for name in names]
            assert gpu.reaches == {(0, 1)}
        assert backend.stats()["reserved_bytes"] <= 4 * MIB
        del arrays, x
        assert backend.fallback.stats()["allocated_bytes"] == 0
        assert backend.fallback.trim() > 0


def test_by_name(gpu):
    total = ndx.memory.info("cuda:1").total
    with ndx.use("cudapeer:0", peer=1, limit="50%") as backend:
        x = ndx.ones(1000)
        assert (x.device, x.backend, backend.name) == ("cuda:0", backend, "cudapeer:0")
        assert backend.limit == total // 2
        assert isinstance(backend.source, ndx.backends.cuda_memory.CudaPeerSource)
    # Access is had once; others may have it already.
    assert ndx.backends.get("cudapeer:0").peer == 1
    assert ndx.backends.get("cudapeer:1").peer == 0
    assert gpu is None or gpu.reaches == {(0, 1), (1, 0)}
    assert float(ndx.sum(x)) == 1000.0


def test_it_is_a_part_of_the_other_gpus_memory(gpu):
    ndx.memory.set_limit("8MiB", device="cuda:1")
    try:
        with ndx.use("cudapeer:0", peer=1):
            x = ndx.empty(4 * MIB, dtype="int8")
            with pytest.raises(ndx.OutOfMemoryError, match="the limit of 'cuda:1'"):
                ndx.empty(6 * MIB, dtype="int8")
        with ndx.use("cuda:0"):
            y = ndx.empty(16 * MIB, dtype="int8")
    finally:
        ndx.memory.set_limit(None, device="cuda:1")
    del x, y


def test_gpus_that_do_not_reach_each_other(machine, monkeypatch):
    monkeypatch.setattr(machine, "can_reach", set())
    for ask in (
        lambda: ndx.use("cuda:0", fallback="cuda:1"),
        lambda: ndx.use("cudapeer:0", peer=1),
        lambda: ndx.use("cudapeer:0"),
    ):
        with pytest.raises(ndx.DeviceError, match="CanAccessPeer is 0.*: none.*'host'"):
            ask()


@pytest.mark.parametrize("peer", [-1, "1", 1.0, True])
def test_numbers_that_are_none(gpu, peer):
    with pytest.raises(ValueError, match="is not the number of a GPU"):
        ndx.use("cudapeer:0", peer=peer)


def test_bad_peers(gpu):
    with pytest.raises(ValueError, match="peer=0 is the GPU itself"):
        ndx.use("cudapeer:0", peer=0)
    with pytest.raises(ndx.DeviceError, match="there is no GPU 'cuda:99'"):
        ndx.use("cuda:0", fallback="cuda:99")
    with pytest.raises(TypeError, match="has no option"):
        ndx.use("cuda:0", peer=1)
    # Memory of its own is another matter.
    with pytest.raises(ValueError, match="is not memory of cuda:0"):
        ndx.use("cuda:0", fallback=ndx.backends.get("cuda:1"))


def test_a_chain(gpu):
    with ndx.use("cudahost:1", limit="2MiB", fallback="cuda:0") as backend:
        assert (backend.fallback.name, backend.fallback.peer) == ("cudapeer:1", 0)


def test_streams_are_those_of_the_gpu_that_computes(machine, stand_in):
    with ndx.use("cudapeer:0", limit="4MiB") as backend:
        streams = check_that_release_waits(machine, stand_in)
        assert machine.device == 0
        for each in streams:
            backend.close_stream(each.ptr)


def test_a_copy_to_the_gpu_in_whose_memory_it_is(gpu):
    with ndx.use("cudapeer:0", peer=1):
        x = ndx.arange(1000.0)
    assert x.backend.name == "cudapeer:0"
    y = x.to_device("cuda:1")
    assert (y.device, y.backend.name) == ("cuda:1", "cuda:1")
    assert y.to_device("cpu").tolist() == x.tolist()
    assert x.to_device("cuda:0").tolist() == x.tolist()


def test_what_others_are_given(gpu):
    with ndx.use("cudapeer:0", peer=1):
        x = ndx.arange(100)
    # From the address others would take it for an array of the other GPU.
    with pytest.raises(BufferError, match="in memory of GPU 1.*from_dlpack"):
        x.__cuda_array_interface__  # noqa: B018
    y = ndx.from_dlpack(x)
    assert (y.device, address_of(y)) == ("cuda:0", address_of(x))

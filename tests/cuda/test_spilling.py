"""What a GPU's memory has no room for: page-locked memory of the host."""

import pytest
from ndx._cuda.bridge import address_of as pointer

import ndx

from .conftest import check_that_release_waits

MIB = 1 << 20


def host_backend():
    return ndx.backends.get("cudahost:0")


def on_host(gpu, x):
    """Whether an array of a GPU lies in memory of the host."""
    if gpu is None:
        return x.backend.name.startswith("cudahost")
    return gpu.host_range(pointer(x), x.nbytes) is not None


def compute(x):
    """Return a number that any byte of the array changes, computed on the GPU."""
    y = x * 2 + ndx.arange(x.size, dtype=x.dtype, device=x.device)
    return float(ndx.sum(y @ y))


def test_the_fallback(gpu):
    n = MIB // 8
    with ndx.use("cuda:0", limit="4MiB", fallback="host") as backend:
        arrays = [ndx.full(n, float(i)) for i in range(8)]
        assert backend.fallback is host_backend()
        assert {x.device for x in arrays} == {ndx.Device("cuda:0")}
        names = [x.backend.name for x in arrays]
        assert names == ["cuda:0"] * names.count("cuda:0") + ["cudahost:0"] * (
            8 - names.count("cuda:0"))  # fmt: skip
        assert 0 < names.count("cuda:0") < 8
        assert [on_host(gpu, x) for x in arrays] == [
            name == "cudahost:0" for name in names]  # fmt: skip
        assert backend.stats()["reserved_bytes"] <= 4 * MIB
        assert host_backend().stats()["allocated_bytes"] >= MIB
        for i, x in enumerate(arrays):
            assert compute(x[:5]) == compute(ndx.full(5, float(i)))
            assert x.to_device("cpu")[-1] == i
        x = ndx.zeros(n)
        assert not bool(ndx.any(x))
        x[...] = arrays[0]
    del arrays, x
    assert host_backend().stats()["allocated_bytes"] == 0
    # Copies went through page-locked memory of the CPU's, which is kept, too.
    ndx.memory.empty_cache()
    assert gpu is None or gpu.host_held == 0


def test_by_name(gpu):
    with ndx.use("cudahost", limit="8MiB") as backend:
        x = ndx.ones(1000)
        assert (x.device, backend.name) == ("cuda:0", "cudahost:0")
        assert not backend.host_accessible
        assert backend.memory_info()[1] != ndx.backends.get("cuda").memory_info()[1]
        assert (x + 1).backend is backend
        with pytest.raises(TypeError, match=r"to_device\('cpu'\)"):
            memoryview(x)
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.empty(9 * MIB, dtype="int8")
    if gpu is not None:
        with ndx.use("cuda:1", limit="1MiB", fallback="host"):
            y = ndx.ones(MIB)
        assert (y.device, y.backend.name) == ("cuda:1", "cudahost:1")
        assert y.backend is ndx.backends.get("cudahost:1")
        del ndx.backends._registry._shared["cudahost:1"]


def test_a_fallback_of_another_gpu_is_refused(gpu):
    for wrong in ("pinned", ndx.backends.get("mmap"), ndx.backends.HostBackend()):
        with pytest.raises(ValueError, match="fallback='host'"):
            ndx.use("cuda:0", fallback=wrong)
    with pytest.raises(ValueError, match="is not memory of cpu"):
        ndx.use("host", fallback="cuda:0")


def test_fallback_memory_waits_for_its_streams(machine, stand_in):
    with ndx.use("cuda:0", limit=0, fallback="host"):
        streams = check_that_release_waits(machine, stand_in)
    for each in streams:
        host_backend().close_stream(each.ptr)


@pytest.mark.parametrize("learn", ["first", "liveness"])
def test_spill_host(gpu, learn):
    with ndx.use("cuda:0", limit="6MiB") as backend:
        ws = ndx.workspace("step", size="1MiB", spill="host", learn=learn)
        for _ in range(3):
            with ws:
                arrays = [ndx.full(MIB // 8, float(i)) for i in range(10)]
                places = [on_host(gpu, x) for x in arrays]
                # The arena, the rest of the GPU's memory, and then the host's.
                assert places == [False] * places.count(False) + [True] * (
                    places.count(True))  # fmt: skip
                assert 1 <= places.count(False) < 10
                assert {x.device for x in arrays} == {ndx.Device("cuda:0")}
                assert {x.workspace for x in arrays} == {"step"}
                total = ndx.sum(ndx.stack([x[-1] for x in arrays]))
                assert float(total) == 45.0
                stats = ws.stats()
                assert stats["spilled_bytes"] >= places.count(True) * MIB
                kept = arrays[-1].detach() if places.count(True) == 1 else None
            with pytest.raises(ndx.StaleArrayError):
                arrays[-1] + 1
            del arrays
            assert host_backend().stats()["allocated_bytes"] == 0
        assert backend.stats()["reserved_bytes"] <= 6 * MIB
        ws.destroy()
    del kept


def test_it_is_not_used_before_the_gpu_is_full(gpu):
    with (
        ndx.use("cuda:0"),
        ndx.workspace("step", size="64KiB", spill="host") as ws,
    ):
        x = ndx.ones(MIB)
        assert x.backend.name == "cuda:0"
    assert ws.stats()["spilled_count"] == 1
    assert host_backend().stats()["total_allocations"] == 0
    ws.destroy()


def test_spilled_arrays_escape_as_others_do(gpu):
    with ndx.use("cuda:0", limit="4MiB"):
        with ndx.workspace("step", size="1MiB", spill="host", escape="detach") as ws:
            x = ndx.full(MIB, 3.0)
            assert on_host(gpu, x)
        assert float(ndx.max(x)) == 3.0
        assert on_host(gpu, x)
        ws.destroy()
    del x


def test_both_are_full(gpu):
    with ndx.use("cuda:0", limit="2MiB", fallback=ndx.backends.CudaHostBackend(
            limit="2MiB")):  # fmt: skip
        x = ndx.ones(MIB // 8)
        with pytest.raises(ndx.OutOfMemoryError, match="cuda:0"):
            ndx.ones(MIB)
    del x


@pytest.mark.parametrize(
    ("backend", "policy", "message"),
    [
        ("host", {"spill": "host"}, "spill='host' is for the memory of a GPU"),
        ("host", {"mirror": "host"}, "mirror='host' is for the memory of a GPU"),
        ("pinned", {"spill": "host"}, "spill='host' is for the memory of a GPU"),
    ],
)
def test_policies_that_do_not_fit(gpu, backend, policy, message):
    with pytest.raises(ndx.WorkspaceError, match=message):
        ndx.workspace("refused", backend=backend, **policy)

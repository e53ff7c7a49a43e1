"""Managed memory: ndx.use("cuda:0", source="managed"), its advice and prefetches."""

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st
from ndx._cuda.bridge import address_of

import ndx

from .conftest import made_or_skip

MIB = 1 << 20
READ_MOSTLY, PREFERRED, ACCESSED_BY = 1, 3, 5


@pytest.fixture(autouse=True)
def managed(gpu):
    """Skip where a real GPU's pages do not move by themselves."""
    if gpu is None:
        made_or_skip(ndx.backends.CudaBackend, source="managed", prefetch=True)


def pages_of(machine, x):
    return machine.managed_range(address_of(x), x.nbytes)


def test_arrays_are_the_gpus(gpu):
    with ndx.use("cuda:0", source="managed") as backend:
        x = ndx.ones(1000)
        assert isinstance(backend.source, ndx.backends.CudaManagedSource)
        assert (x.device, backend.name, x.backend) == ("cuda:0", "cuda:0", backend)
        assert float(ndx.sum(x * 2)) == 2000.0
        assert x.to_device("cpu").tolist() == [1.0] * 1000
        # Kernels may write at any time, unseen by a view of NumPy's.
        with pytest.raises(TypeError, match=r"to_device\('cpu'\)"):
            np.asarray(x)
        assert backend.stats()["allocated_bytes"] == 8000
    if gpu is not None:
        assert any(call[0] == "mallocManaged" for call in gpu.calls)
        assert not any(call[0] == "malloc" for call in gpu.calls)
    del x
    assert backend.stats()["allocated_bytes"] == 0
    assert backend.trim() > 0
    assert gpu is None or gpu.managed == {}


def test_there_is_more_than_the_gpu_has(machine):
    more = machine.total + 8 * MIB
    with ndx.use("cuda:0", source="managed", limit=more):
        x = ndx.empty(more - 4 * MIB, dtype="int8")
        assert x.nbytes > machine.total
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is"):
            ndx.empty(8 * MIB, dtype="int8")
    # No limit on a GPU counts it.
    ndx.memory.set_limit("32MiB", device="cuda:0")
    try:
        with ndx.use("cuda:0", source="managed"):
            y = ndx.empty(64 * MIB, dtype="int8")
    finally:
        ndx.memory.set_limit(None, device="cuda:0")
    del x, y
    with (
        ndx.use("cuda:0", source="managed"),
        pytest.raises(ndx.OutOfMemoryError, match="cuda:0"),
    ):
        ndx.empty(machine.host_total + machine.total + 1, dtype="int8")


def test_where_there_is_none(machine, monkeypatch):
    monkeypatch.setattr(machine, "moves_pages", False)
    with ndx.use("cuda:0", source="managed"):
        x = ndx.ones(3)
    with pytest.raises(ndx.DeviceError, match=r"cuda:1.*ConcurrentManagedAccess"):
        ndx.use("cuda:1", source="managed", prefetch=True)
    for call in (ndx.cuda.prefetch, lambda x: ndx.cuda.advise(x, "read_mostly")):
        with pytest.raises(ndx.DeviceError, match="ConcurrentManagedAccess is 0"):
            call(x)
    monkeypatch.setattr(machine, "has_managed", False)
    with pytest.raises(ndx.DeviceError, match=r"cuda:1.*fallback='host'"):
        ndx.use("cuda:1", source="managed")


def test_options(gpu, monkeypatch):
    with pytest.raises(ValueError, match="is for source='managed'"):
        ndx.use("cuda:0", prefetch=True)
    with pytest.raises(ValueError, match="valid are 'pool', 'async', 'managed'"):
        ndx.use("cuda:0", source="unified")
    backend = ndx.backends.get("cuda:0", source="managed", limit="8MiB", prefetch=True)
    assert backend.options.source == "managed"
    assert backend.source.prefetches


def test_prefetch(gpu):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.reshape(ndx.arange(2.0 * MIB, device="cuda:0"), (2, MIB))
    for device, expected in ((None, 0), ("cpu", -1), (ndx.Device("cuda:0"), 0)):
        assert ndx.cuda.prefetch(x, device) is None
        if gpu is not None:
            assert gpu.calls[-1] == ("memPrefetchAsync", x.nbytes, expected, 0)
            # In the order of the stream: the CPU has not waited.
            assert pages_of(gpu, x)["pages"] != expected
            ndx.synchronize()
            assert pages_of(gpu, x)["pages"] == expected
    assert float(ndx.sum(x)) == MIB * (2 * MIB - 1)
    assert x.device == "cuda:0"


@given(
    st.integers(0, 3), st.integers(1, 3), st.sampled_from([-2, -1, 1, 2]),
    st.booleans(),
)  # fmt: skip
@examples(30)
def test_a_view_moves_what_it_spans(gpu, start, length, step, transposed):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.zeros((6, 5))
    view = (x.T if transposed else x)[start : start + length, ::step]
    ndx.cuda.prefetch(view)
    if gpu is not None:
        steps = zip(view.shape, view.strides, strict=True)
        spanned = 8 + sum((n - 1) * abs(stride) for n, stride in steps)
        assert gpu.calls[-1][:2] == ("memPrefetchAsync", spanned)


def test_each_new_array_moves_to_the_gpu(machine, stand_in):
    side = stand_in[0].cuda.Stream()
    with ndx.use("cuda:0", source="managed", prefetch=True) as backend, side:
        x = ndx.empty(1000)
        assert machine.calls[-1] == ("memPrefetchAsync", 8000, 0, side.ptr)
        side.synchronize()
        assert pages_of(machine, x)["pages"] == 0
        del x
    backend.close_stream(side.ptr)


def test_advice(gpu):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.ones(MIB)
    ndx.cuda.advise(x, "read_mostly")
    ndx.cuda.advise(x, "preferred_location", "cpu")
    ndx.cuda.advise(x, "accessed_by")
    if gpu is not None:
        given_advice = {READ_MOSTLY: 0, PREFERRED: -1, ACCESSED_BY: 0}
        assert pages_of(gpu, x)["advice"] == given_advice
    for advice in ("read_mostly", "preferred_location", "accessed_by"):
        ndx.cuda.advise(x, advice, unset=True)
    assert gpu is None or pages_of(gpu, x)["advice"] == {}
    assert float(ndx.sum(x)) == MIB


def test_no_elements(gpu):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.ones((3, 0))
    ndx.cuda.prefetch(x, "cpu")
    ndx.cuda.advise(x, "read_mostly")


def test_bad_arguments(gpu):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.ones(3)
        with ndx.workspace("step"):
            stale = ndx.ones(3)
    for call in (ndx.cuda.prefetch, lambda x: ndx.cuda.advise(x, "read_mostly")):
        with pytest.raises(TypeError, match="takes an array on a GPU, not one on"):
            call(ndx.ones(3, device="cpu"))
        with pytest.raises(TypeError, match="takes an array on a GPU, not list"):
            call([1.0])
        with pytest.raises(ndx.DeviceError, match="is not in managed memory.*source="):
            call(ndx.ones(3, device="cuda:0"))
        with pytest.raises(ndx.StaleArrayError):
            call(stale)
    with pytest.raises(ValueError, match="valid are 'read_mostly'"):
        ndx.cuda.advise(x, "mostly_read")
    with pytest.raises(ValueError, match="there is no device 'gpu'"):
        ndx.cuda.prefetch(x, "gpu")
    with pytest.raises(ndx.DeviceError, match="there is no GPU 'cuda:99'"):
        ndx.cuda.prefetch(x, "cuda:99")
    ndx.workspace("step").destroy()


def test_a_graph_has_none(gpu):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.ones(3)

    @ndx.cuda.graph
    def step(x):
        ndx.cuda.prefetch(x)
        return x + 1

    step(x)
    with pytest.raises(ndx.DeviceError, match="can't be part of a captured graph"):
        step(x)


def test_between_gpus(machine):
    with ndx.use("cuda:0", source="managed"):
        x = ndx.arange(5.0, device="cuda:0")
    y = x.to_device("cuda:1")
    assert not any(call[0] == "memcpyPeerAsync" for call in machine.calls)
    assert (y.device, y.tolist()) == ("cuda:1", [0.0, 1.0, 2.0, 3.0, 4.0])
    with ndx.use("cuda:0", source="managed"):
        z = y.to_device("cuda:0")
    assert z.tolist() == y.tolist()

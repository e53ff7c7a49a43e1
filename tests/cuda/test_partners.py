"""CuPy's and PyTorch's own arrays, which a stand-in does not have: on a real GPU."""

import pytest
from ndx._cuda.bridge import address_of

import ndx
from ndx.backends import _cupy


@pytest.fixture
def cupy(gpu):
    if gpu is not None:
        pytest.skip("NumPy stands in for CuPy here: its arrays are others")
    return _cupy.load()


@pytest.mark.parametrize("name", ["asarray", "from_dlpack"])
def test_cupys_arrays(cupy, name):
    x = ndx.arange(6.0, device="cuda:0")
    theirs = getattr(cupy, name)(x)
    assert theirs.data.ptr == address_of(x)
    theirs *= 2
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    again = ndx.asarray(theirs[1:])
    assert address_of(again) == address_of(x) + 8
    own = cupy.arange(3.0)
    taken = getattr(ndx, name)(own)
    assert (taken.device, taken.backend) == ("cuda:0", None)
    assert address_of(taken) == own.data.ptr
    with cupy.cuda.Stream():
        total = ndx.sum(taken)
        assert float(total) == 3.0


def test_cupys_streams(cupy):
    x = ndx.ones(1000)
    stream = cupy.cuda.Stream(non_blocking=True)
    for given in (stream, stream.ptr):
        g = x.to_device("cuda:0", stream=given)
        assert g.to_device("cpu", stream=given).tolist() == [1.0] * 1000
    del g
    ndx.backends.get("cuda:0").close_stream(stream.ptr)
    # More than a pool has slots for; those that read memory of ours are kept.
    for _ in range(70):
        g = ndx.ones(1000, device="cuda:0")
        with cupy.cuda.Stream(non_blocking=True):
            theirs = cupy.from_dlpack(g) + 1
            assert float(theirs[0]) == 2.0
        del g, theirs
    assert float(ndx.sum(ndx.ones(1000, device="cuda:0"))) == 1000.0


def test_pytorchs_tensors(cupy):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    x = ndx.arange(6.0, device="cuda:0")
    for theirs in (torch.from_dlpack(x), torch.as_tensor(x, device="cuda:0")):
        assert theirs.data_ptr() == address_of(x)
    theirs.mul_(2)
    assert x.tolist() == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    taken = ndx.asarray(torch.ones(3, device="cuda:0"))
    assert (taken + 1).tolist() == [2.0] * 3
    side = torch.cuda.Stream()
    g = ndx.ones(1000).to_device("cuda:0", stream=side)
    side.synchronize()
    assert float(ndx.sum(g)) == 1000.0
    del g
    ndx.backends.get("cuda:0").close_stream(side.cuda_stream)

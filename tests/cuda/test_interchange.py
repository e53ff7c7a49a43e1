"""Between the CPU and GPUs, and with other libraries."""

import gc
import weakref

import numpy as np
import pytest
from helpers.capsules import Exporter
from ndx._cuda.bridge import address_of as pointer
from ndx._cuda.bridge import from_capsule

import ndx


@pytest.mark.parametrize("dtype", ["float64", "int8", "bool", "complex64", "uint16"])
@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 4, 2)])
def test_there_and_back(gpu, dtype, shape):
    x = ndx.astype(ndx.reshape(ndx.arange(int(np.prod(shape))), shape), dtype)
    g = x.to_device("cuda:0")
    assert (g.device, g.shape, g.dtype) == ("cuda:0", x.shape, x.dtype)
    assert g.to_device("cuda") is g
    back = g.to_device("cpu")
    assert back.device == "cpu"
    assert bool(ndx.all(back == x))


def test_any_layout(gpu):
    x = ndx.reshape(ndx.arange(24), (2, 3, 4))
    g = x.to_device("cuda:0")
    for cut in (lambda a: a[:, ::-1, 1:], lambda a: ndx.permute_dims(a, (2, 0, 1))):
        assert cut(g).to_device("cpu").tolist() == cut(x).tolist()
        assert cut(x).to_device("cuda:0").tolist() == cut(x).tolist()
    wide = ndx.broadcast_to(g[0, 0], (3, 4))
    assert wide.to_device("cpu").tolist() == [[0, 1, 2, 3]] * 3


def test_asarray(gpu):
    source = np.arange(6.0).reshape(2, 3)
    g = ndx.asarray(source, device="cuda:0")
    source[0, 0] = 9
    assert g.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert ndx.asarray(g) is g
    assert ndx.asarray(g, device="cuda:0") is g
    assert pointer(ndx.asarray(g, copy=True)) != pointer(g)
    assert ndx.asarray(g, dtype="float32").dtype == ndx.float32
    assert ndx.asarray(g, device="cpu").device == "cpu"
    for refused in (
        lambda: ndx.asarray(source, device="cuda:0", copy=False),
        lambda: ndx.asarray(g, device="cpu", copy=False),
        lambda: ndx.asarray(g, dtype="int8", copy=False),
    ):
        with pytest.raises(ValueError, match="copy=False"):
            refused()
    with ndx.use("cuda:0"):
        assert ndx.asarray([1, 2]).device == "cuda:0"
        assert ndx.asarray(source).device == "cuda:0"
        assert ndx.asarray(source, device="cpu").device == "cpu"
        assert ndx.asarray(g) is g
        # An array of ours stays where it is.
        host = ndx.asarray(source, device="cpu")
        assert ndx.asarray(host) is host
        assert ndx.asarray(host, dtype="float32").device == "cpu"
        assert ndx.asarray(host, device="cuda:0").device == "cuda:0"


def test_streams_of_transfers(machine, stand_in):
    side = stand_in[0].cuda.Stream()
    x = ndx.ones(1000)
    for stream in (side, side.ptr, np.int64(side.ptr), OfTorch(side), OfOthers(side)):
        machine.calls.clear()
        g = x.to_device("cuda:0", stream=stream)
        assert ("memcpyAsync", 1, side.ptr) in machine.calls
        assert ("streamWaitEvent", side.ptr, 0) in machine.calls
        machine.calls.clear()
        assert g.to_device("cpu", stream=stream).tolist() == x.tolist()
        assert ("memcpyAsync", 2, side.ptr) in machine.calls
        assert ("streamSynchronize", side.ptr) in machine.calls
    with pytest.raises(ValueError, match="no streams"):
        x.to_device("cpu", stream=side)
    del g
    ndx.backends.get("cuda:0").close_stream(side.ptr)
    machine.calls.clear()
    for default in (0, 1):
        x.to_device("cuda:0", stream=default)
    assert {call[2] for call in machine.calls if call[0] == "memcpyAsync"} == {0}


class OfTorch:
    """What PyTorch's streams have; before 2.9 nothing else."""

    def __init__(self, stream):
        self.cuda_stream = stream.ptr


class OfOthers:
    def __init__(self, stream):
        self.stream = stream

    def __cuda_stream__(self):
        return 0, self.stream.ptr


@pytest.mark.parametrize("stream", ["side", 1.5, True, -1, object(), (0, 1)])
def test_streams_that_there_are_not(gpu, stream):
    x = ndx.ones(3)
    g = x.to_device("cuda:0")
    for call in (
        lambda: x.to_device("cuda:0", stream=stream),
        lambda: g.to_device("cpu", stream=stream),
    ):
        with pytest.raises(TypeError, match=r"stream=.*cupy\.cuda\.Stream.*handle"):
            call()


def test_another_librarys_stream_stays_alive(gpu):
    side = ndx.backends._cupy.load().cuda.Stream()
    theirs = OfOthers(side)
    x = ndx.ones(1000)
    with ndx.use("cuda:0") as backend:
        g = x.to_device("cuda:0", stream=theirs)
    handle, alive = side.ptr, weakref.ref(side)
    del theirs, side
    gc.collect()
    assert alive() is not None
    del g
    backend.close_stream(handle)
    gc.collect()
    assert alive() is None


def test_dlpack(gpu):
    g = ndx.asarray([[1.0, 2.0], [3.0, 4.0]], device="cuda:0")
    assert g.__dlpack_device__() == (2, 0)
    taken = ndx.from_dlpack(g.T)
    assert taken.device == "cuda:0"
    assert taken.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert pointer(taken) == pointer(g)
    with pytest.raises(BufferError, match="can't be closed"):
        g.close()
    taken[0, 0] = 9.0
    assert float(g[0, 0]) == 9.0
    copied = ndx.from_dlpack(g, copy=True)
    assert pointer(copied) != pointer(g)
    del taken, copied
    g.close()


def test_dlpack_to_another_device(gpu):
    x = np.arange(3.0)
    g = ndx.from_dlpack(x, device="cuda:0")
    assert (g.device, g.tolist()) == ("cuda:0", [0.0, 1.0, 2.0])
    assert ndx.from_dlpack(g, device="cuda:0").device == "cuda:0"
    back = ndx.from_dlpack(g, device="cpu")
    assert (back.device, back.tolist()) == ("cpu", [0.0, 1.0, 2.0])
    for source, device in ((x, "cuda:0"), (g, "cpu")):
        with pytest.raises(BufferError, match="copy=False"):
            ndx.from_dlpack(source, device=device, copy=False)


def test_dlpack_to_the_cpu(gpu):
    g = ndx.asarray([1.0, 2.0], device="cuda:0")
    capsule = g.__dlpack__(dl_device=(1, 0), max_version=(1, 0))
    assert "dltensor_versioned" in repr(capsule)
    with pytest.raises(BufferError, match="copy=False"):
        g.__dlpack__(dl_device=(1, 0), copy=False)
    with pytest.raises(BufferError, match="can't be"):
        g.__dlpack__(dl_device=(2, 5))
    with pytest.raises(BufferError, match="can't be"):
        ndx.ones(2).__dlpack__(dl_device=(2, 0))


@pytest.mark.parametrize("stream", [0, -2, "x", 1.5])
def test_dlpack_streams_that_there_are_not(gpu, stream):
    g = ndx.ones(2, device="cuda:0")
    with pytest.raises(BufferError, match="not a stream"):
        g.__dlpack__(stream=stream)


@pytest.mark.parametrize("index", [-1, 1000, 2**31 - 1])
def test_dlpack_of_gpus_that_there_are_not(index):
    exporter = Exporter(np.ones(3), device_type=2, device_id=index)
    with pytest.raises(BufferError, match=f"device \\(2, {index}\\)"):
        from_capsule(exporter.__dlpack__(max_version=(1, 0)))


def test_a_consumers_stream_waits(machine, stand_in):
    ours, theirs = stand_in[0].cuda.Stream(), stand_in[0].cuda.Stream()
    with ours:
        g = ndx.ones(1000, device="cuda:0")
        machine.calls.clear()
        capsule = g.__dlpack__(stream=theirs.ptr)
        assert ("streamWaitEvent", theirs.ptr, ours.ptr) in machine.calls
        machine.calls.clear()
        assert g.__dlpack__(stream=-1) is not None
        assert machine.calls == []
        assert g.__dlpack__(stream=2) is not None
        assert machine.calls == [("streamSynchronize", ours.ptr)]
        machine.calls.clear()
        del capsule, g
        # Used again only when they are done with it.
        assert ("eventRecord", theirs.ptr) in machine.calls
    backend = ndx.backends.get("cuda:0")
    backend.synchronize()
    for stream in (ours, theirs):
        backend.close_stream(stream.ptr)


def test_cuda_array_interface(gpu):
    g = ndx.reshape(ndx.arange(6, device="cuda:0"), (2, 3))
    interface = g.__cuda_array_interface__
    assert interface["shape"] == (2, 3)
    assert interface["typestr"] == "<i8"
    assert interface["strides"] is None
    assert interface["version"] == 3
    assert interface["data"][1] is False
    assert g.T.__cuda_array_interface__["strides"] == (8, 24)
    # There is no release: the bytes stay until the array goes.
    with pytest.raises(BufferError, match="can't be closed"):
        g.close()
    assert not hasattr(ndx.ones(2), "__cuda_array_interface__")


def test_arrays_of_other_libraries(machine, stand_in):
    module, _ = stand_in
    theirs = module.ndarray((3,), "f8")
    theirs.fill(2.0)

    class Foreign:
        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **kwargs):
            return ndx.asarray([2.0, 2.0, 2.0], device="cuda:0").__dlpack__(**kwargs)

    x = ndx.asarray(Foreign())
    assert (x.device, x.backend) == ("cuda:0", None)
    assert (x + 1).tolist() == [3.0, 3.0, 3.0]
    del theirs
    machine.default_mallocs = 0

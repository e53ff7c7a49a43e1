"""Between our arrays and those of CuPy itself, over host memory, without a driver."""

import inspect
import re

import numpy as np
import pytest
from ndx._cuda.bridge import Bridge

import ndx
from ndx._cuda.transfer import stream_of

from .stand_in import standin
from .stand_in.async_pool import AsyncRuntime
from .stand_in.host_memory import HostRuntime
from .stand_in.names import FFT, FUNCTIONS, LINALG
from .stand_in.other_memory import OtherRuntime

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")


@pytest.fixture
def bridge():
    return Bridge(cupy, 0)


def cupy_over(array):
    memory = cupy.cuda.UnownedMemory(array.ctypes.data, array.nbytes, array, 0)
    return cupy.ndarray(
        array.shape, array.dtype, cupy.cuda.MemoryPointer(memory, 0), array.strides
    )


def test_foreign_memory_and_back(bridge):
    array = np.arange(12.0).reshape(3, 4)
    x = bridge.from_cupy(cupy_over(array))
    assert x.device == "cuda:0"
    assert (x.shape, x.dtype, x.strides) == ((3, 4), array.dtype, (32, 8))
    for view, expected in ((x, array), (x.T, array.T), (x[1:, ::-2], array[1:, ::-2])):
        found = bridge.to_cupy(view)
        assert isinstance(found, cupy.ndarray)
        assert (found.shape, found.strides) == (expected.shape, expected.strides)
        assert found.data.ptr == expected.ctypes.data


def test_views_of_what_cupy_has_are_ours_again(bridge):
    array = np.arange(12.0).reshape(3, 4)
    x = bridge.from_cupy(cupy_over(array))
    again = bridge.from_cupy(bridge.to_cupy(x).T[1:])
    assert again.shape == (3, 3)
    assert again.strides == (8, 32)
    # The memory stays while any of them is alive.
    del x, array
    assert bridge.to_cupy(again).data.ptr == bridge.to_cupy(again[0]).data.ptr


def test_an_export_keeps_the_memory(bridge):
    x = bridge.from_cupy(cupy_over(np.arange(3.0)))
    out = bridge.to_cupy(x)
    with pytest.raises(BufferError, match="can't be closed"):
        x.close()
    del out
    x.close()
    with pytest.raises(ndx.StaleArrayError):
        bridge.to_cupy(x)


def test_the_cpu_does_not_read_it(bridge):
    x = bridge.from_cupy(cupy_over(np.arange(3.0)))
    with pytest.raises(TypeError, match="to_device"):
        np.asarray(x)


def test_dtypes_that_there_are_not(bridge):
    with pytest.raises(TypeError, match="not a dtype"):
        bridge.from_cupy(cupy_over(np.zeros(2, np.longdouble)))


class OfTorch:
    cuda_stream = 4096


class OfOthers:
    def __cuda_stream__(self):
        return 0, 4096


@pytest.mark.parametrize("theirs", [4096, np.int64(4096), OfTorch(), OfOthers()])
def test_streams(theirs):
    stream = stream_of(cupy, theirs)
    assert isinstance(stream, cupy.cuda.Stream)
    assert stream.ptr == 4096
    assert stream_of(cupy, stream) is stream
    assert stream_of(cupy, 0) is stream_of(cupy, 1) is cupy.cuda.Stream.null


def test_what_the_stand_in_has_of_streams():
    for name in ("Stream", "ExternalStream", "get_current_stream"):
        ours, real = getattr(standin.cuda, name), getattr(cupy.cuda, name)
        theirs = real.__doc__ if name == "get_current_stream" else str(
            inspect.signature(real))  # fmt: skip
        for parameter in inspect.signature(ours).parameters:
            assert parameter in theirs
    for name in vars(standin._BaseStream).keys() | vars(standin.Stream).keys():
        assert name == "__module__" or hasattr(cupy.cuda.Stream, name), name


RUNTIME = {
    name: value
    for part in (HostRuntime, AsyncRuntime, OtherRuntime)
    for name, value in vars(part).items()
    if callable(value) and not name.startswith("_")
}


@pytest.mark.parametrize("name", RUNTIME)
def test_the_stand_in_has_what_cupy_has(name):
    found = getattr(cupy.cuda.runtime, name)
    # "hostAlloc(size_t size, unsigned int flags) -> intptr_t", from Cython.
    signature = re.search(rf"{name}\((.*?)\)", found.__doc__)[1]
    theirs = [re.split(r"[ =]", part.strip().partition("=")[0])[-1]
              for part in signature.split(",") if part.strip()]  # fmt: skip
    ours = [each for each in inspect.signature(RUNTIME[name]).parameters
            if each != "self"]  # fmt: skip
    assert theirs == ours


# ---------------------------------------------------------------- functions

DTYPES = "?bBhHiIlLfdFD"


def expected_dtype(function, dtype):
    """Return the dtype of NumPy's result; None if there is none."""
    try:
        with np.errstate(all="ignore"):
            found = function(*[np.ones(1, dtype)] * function.nin)
    except TypeError:
        return None
    return (found[0] if isinstance(found, tuple) else found).dtype


def first_loop(function, dtype):
    """Return the dtype of what CuPy's ufunc makes of a dtype; None if it can't."""
    for signature in function.types:
        taken, _, given = signature.partition("->")
        if all(np.can_cast(dtype, np.dtype(each)) for each in taken):
            return np.dtype(given[0])
    return None


@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_cupy_has_the_loops_that_numpy_has(name):
    function, theirs = getattr(np, name), getattr(cupy, name)
    if not isinstance(function, np.ufunc) or not isinstance(theirs, cupy.ufunc):
        return
    for char in DTYPES:
        dtype = np.dtype(char)
        expected = expected_dtype(function, dtype)
        if expected is not None and not (name.startswith("logical") and char in "FD"):
            assert first_loop(theirs, dtype) == expected, char


@pytest.mark.parametrize("part", ["linalg", "fft"])
def test_cupy_has_what_is_stood_in_for(part):
    names = {"linalg": LINALG, "fft": FFT}[part].split()
    assert [name for name in names if not hasattr(getattr(cupy, part), name)] == []

"""Handing memory to others and taking theirs: buffers and NumPy's protocols."""

import array
import ctypes
import gc
import mmap
import sys
import weakref

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.buffers import (
    FLAGS,
    FULL,
    INDIRECT,
    SIMPLE,
    WRITABLE,
    buffer_object,
    get_buffer,
)
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx


class Watched(np.ndarray):
    """A NumPy array whose end can be seen."""


def watched(values):
    a = np.array(values).view(Watched)
    return a, weakref.ref(a)


# ---- the buffer protocol -----------------------------------------------------


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_memoryview(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    x = ndx.asarray(a)
    view = memoryview(x)
    assert view.shape == a.shape
    assert view.ndim == a.ndim
    assert view.itemsize == a.itemsize
    assert view.nbytes == a.nbytes
    assert view.strides == x.strides
    assert view.readonly == (not a.flags.writeable)
    assert view.obj is x
    if a.size:
        assert view.c_contiguous == a.flags.c_contiguous
        assert view.f_contiguous == a.flags.f_contiguous
    assert view.tobytes() == a.tobytes()
    np.testing.assert_array_equal(np.asarray(view), a)
    # The formats that Python 3.11 reads.
    if a.size and "complex" not in dtype and dtype != "float16":
        np.testing.assert_array_equal(np.array(view.tolist(), dtype), a)


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_formats(dtype):
    """NumPy has two classes of scalars for some of its dtypes: "l" and "q"."""
    x = ndx.ones(3, dtype=dtype)
    assert memoryview(x).format == memoryview(np.ones(3, dtype=dtype)).format
    for found in (np.asarray(memoryview(x)), np.asarray(x), np.array([x[0], x[1]])):
        assert found.dtype == dtype
        assert type(found[0]) is np.dtype(dtype).type


LAYOUTS = {
    "C": np.ones((3, 4)),
    "F": np.ones((3, 4), order="F"),
    "both": np.ones((1, 4)),
    "strided": np.ones((6, 8))[::2, ::2],
    "reversed": np.ones((3, 4))[::-1],
    "0-d": np.ones(()),
    "empty": np.ones((0, 4)),
    "read-only": np.frombuffer(bytes(96)).reshape(3, 4),
}


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="its C API")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("flags", FLAGS)
def test_flags(layout, flags):
    """A request is served or refused as NumPy does it, with the same fields."""
    a = LAYOUTS[layout]
    expected = get_buffer(a, FLAGS[flags])
    found = get_buffer(ndx.asarray(a), FLAGS[flags])
    if isinstance(expected, Exception):
        assert isinstance(found, BufferError), found
        return
    if flags in ("simple", "writable"):
        # As CPython's memoryview has it; NumPy says 0.
        expected["ndim"] = 1
    if expected["strides"]:
        # Those along axes of length 0 or 1 mean nothing.
        for key in (found, expected):
            key["strides"] = [s for s, n in zip(key["strides"], a.shape, strict=True)
                              if n > 1 and a.size]  # fmt: skip
    assert found == expected


def test_no_indirect_buffers_are_needed():
    assert get_buffer(ndx.ones(3), INDIRECT | FULL)["shape"] == (3,)


def test_writing_through_a_buffer():
    x = ndx.zeros(3, dtype="int64")
    memoryview(x)[1] = 7
    assert x.tolist() == [0, 7, 0]
    with pytest.raises(TypeError, match="read-only"):
        memoryview(ndx.asarray(np.frombuffer(bytes(8))))[0] = 1.0


def test_a_buffer_outlives_the_array():
    view = memoryview(ndx.arange(1000))
    gc.collect()
    ndx.zeros(1000)
    assert view.tolist() == list(range(1000))


def test_files_take_arrays(tmp_path):
    x = ndx.arange(10)
    path = tmp_path / "data"
    path.write_bytes(x)
    y = ndx.zeros(10, dtype="int64")
    with path.open("rb") as file:
        assert file.readinto(y) == 80
    assert y.tolist() == x.tolist()
    with pytest.raises(BufferError, match="contiguous"):
        path.write_bytes(x[::2])


BUFFERS = {
    "bytearray": (lambda: bytearray(b"\x01\x02"), "uint8", [1, 2], True),
    "memoryview": (lambda: memoryview(b"\x01\x02"), "uint8", [1, 2], False),
    "array": (lambda: array.array("d", [1, 2]), "float64", [1, 2], True),
    "array of longs": (lambda: array.array("l", [1, 2]), "int64", [1, 2], True),
    "ctypes": (lambda: (ctypes.c_int32 * 2)(1, 2), "int32", [1, 2], True),
    "mmap": (lambda: mmap.mmap(-1, 2), "uint8", [0, 0], True),
    "cast": (lambda: memoryview(bytearray(16)).cast("q"), "int64", [0, 0], True),
    "strided": (lambda: memoryview(bytearray(b"1234"))[::-2], "uint8", [52, 50], True),
}


@pytest.mark.parametrize("kind", BUFFERS)
@pytest.mark.parametrize("copy", [None, False, True])
def test_taking_a_buffer(kind, copy):
    make, dtype, values, writeable = BUFFERS[kind]
    buffer = make()
    x = ndx.asarray(buffer, copy=copy)
    assert x.dtype == dtype
    assert x.tolist() == values
    if copy:
        assert x.backend is ndx.current_backend()
        x[0] = 3
        assert ndx.asarray(buffer).tolist() == values
    else:
        assert x.backend is None
        if writeable:
            x[0] = 3
            assert ndx.asarray(buffer).tolist() == [3, *values[1:]]
        else:
            with pytest.raises(ValueError, match="read-only"):
                x[0] = 3


def test_a_shared_buffer_is_held():
    buffer = bytearray(8)
    x = ndx.asarray(buffer)
    with pytest.raises(BufferError):
        buffer.append(1)
    del x
    buffer.append(1)


@pytest.mark.parametrize("buffer", [memoryview(b"ab").cast("c"), b"ab"])
def test_buffers_of_other_types(buffer):
    with pytest.raises(TypeError):
        ndx.asarray(buffer)


# ---- __array__ and __array_interface__ ---------------------------------------


@given(st.data(), st.sampled_from(dtypes.ALL))
def test_to_numpy_and_back(data, dtype):
    a = data.draw(patterns.arrays(dtype, data.draw(patterns.shapes())))
    x = ndx.asarray(a)
    for view in (np.asarray(x), x.__array__(), x.to_numpy(), np.asarray(x.to_numpy())):
        np.testing.assert_array_equal(view, a)
        assert view.dtype == a.dtype
        assert view.strides == x.strides
        assert view.flags.writeable == a.flags.writeable
        assert np.shares_memory(view, a) or not a.size
        assert_same(ndx.asarray(view), a)


@pytest.mark.parametrize("export", [ndx.NDArray.__array__, ndx.NDArray.to_numpy])
def test_array_with_a_dtype_or_copy(export):
    x = ndx.ones(3)
    assert export(x, np.dtype("int8")).dtype == np.int8
    assert np.asarray(x, dtype="float32").dtype == np.float32
    assert np.shares_memory(export(x, np.dtype("float64")), np.asarray(x))
    assert not np.shares_memory(export(x, copy=True), np.asarray(x))
    assert not np.shares_memory(np.array(x), np.asarray(x))
    assert np.shares_memory(np.array(x, copy=False), np.asarray(x))
    with pytest.raises(ValueError, match="copy"):
        export(x, np.dtype("int8"), copy=False)
    with pytest.raises(ValueError, match="copy"):
        np.array(x, dtype="int8", copy=False)


def test_array_interface():
    x = ndx.asarray(np.arange(12.0).reshape(3, 4)[:, ::2], copy=True)[::-1]
    found = x.__array_interface__
    assert found["shape"] == (3, 2)
    assert found["typestr"] == "<f8"
    assert found["version"] == 3
    assert found["strides"] == x.strides
    assert found["data"][1] is False
    assert found["data"][0] == np.asarray(x).__array_interface__["data"][0]
    view = x[1:]
    view.__array_interface__  # noqa: B018
    with pytest.raises(BufferError):
        x.close()
    del view
    with pytest.raises(BufferError):
        x.close()


def test_array_interface_pins_no_longer_than_the_array():
    x = ndx.ones(10)
    x[1:].__array_interface__  # noqa: B018
    x.close()


def test_objects_with_an_array_interface():
    class Interface:
        def __init__(self):
            self.array = np.arange(3.0)
            self.__array_interface__ = self.array.__array_interface__

    source = Interface()
    x = ndx.asarray(source)
    x[0] = 5.0
    assert source.array.tolist() == [5.0, 1.0, 2.0]


def test_objects_with_an_array_method():
    class Convertible:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    assert ndx.asarray(Convertible()).tolist() == [0.0, 1.0, 2.0]


# ---- whose memory it is ------------------------------------------------------

EXPORTS = {
    "np.asarray": np.asarray,
    "__array__": lambda x: x.__array__(),
    "memoryview": memoryview,
    "view": lambda x: x[1:],
    "T": lambda x: x[None].T,
    "dlpack": lambda x: x.__dlpack__(),
    "np.from_dlpack": np.from_dlpack,
    "ndx.from_dlpack": ndx.from_dlpack,
    "asarray": lambda x: ndx.asarray(np.asarray(x)),
    "numpy view": lambda x: np.asarray(x)[1:],
    "iterator": iter,
    "reshape": lambda x: ndx.reshape(x, (2, -1)),
    "broadcast_to": lambda x: ndx.broadcast_to(x, (2, 4)),
}


@pytest.mark.parametrize("export", EXPORTS)
def test_foreign_memory_lives_as_long_as_its_users(export):
    a, alive = watched(np.arange(4.0))
    x = ndx.asarray(a)
    kept = EXPORTS[export](x)
    del a, x
    gc.collect()
    assert alive() is not None
    del kept
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("export", EXPORTS)
def test_our_memory_lives_as_long_as_its_users(export):
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        kept = EXPORTS[export](ndx.full(4, 3.0))
    gc.collect()
    assert backend.stats()["allocated_count"] == 1
    if export not in ("dlpack", "iterator"):
        assert set(np.asarray(kept).ravel()) == {3.0}
    del kept
    gc.collect()
    assert backend.stats()["allocated_count"] == 0


def test_foreign_memory_is_not_counted():
    before = ndx.memory.stats()["allocated_bytes"]
    x = ndx.asarray(np.ones(10_000))
    assert ndx.memory.stats()["allocated_bytes"] == before
    assert x.backend is None
    assert not x.attached
    with ndx.workspace(size="1KiB"):
        y = ndx.asarray(np.ones(3))
        assert not y.attached
    assert y.tolist() == [1.0] * 3
    assert y.detach() is y


def test_closing_foreign_memory_releases_it():
    a, alive = watched(np.ones(3))
    x = ndx.asarray(a)
    y = x[1:]
    del a
    x.close()
    with pytest.raises(ndx.StaleArrayError, match="closed"):
        y + 1
    with pytest.raises(ndx.StaleArrayError, match="closed"):
        np.asarray(x)
    del x, y
    gc.collect()
    assert alive() is None


# ---- consumers that give a buffer back, and go on reading ---------------------------

KEPT = {
    "obj": lambda x: buffer_object(x, SIMPLE),
    "obj, writable": lambda x: buffer_object(x, WRITABLE),
    "np.ndarray": lambda x: np.ndarray((10,), "f8", x),
}


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="its C API")
@pytest.mark.parametrize("how", KEPT)
def test_memory_is_kept_by_what_a_consumer_keeps(how):
    with ndx.workspace("kept", size="4KiB") as workspace:
        x = ndx.full(10, 7.0)
        address = np.asarray(x).ctypes.data
        kept = KEPT[how](x)
        del x
    for _ in range(2):
        with ndx.workspace("kept"):
            ndx.full(300, -1.0)
    assert (ctypes.c_double * 10).from_address(address)[:] == [7.0] * 10
    del kept
    workspace.destroy()
    x = ndx.ones(10)
    KEPT[how](x)
    if how == "np.ndarray":
        with pytest.raises(BufferError):
            x.close()
    else:
        x.close()

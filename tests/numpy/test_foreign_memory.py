"""NumPy's functions on NDArrays over memory of NumPy, and on its newer dtypes."""

import mmap

import numpy as np
import pytest
from helpers.numpy_versions import needs_part, since

import ndx
import ndx.numpy as face

DATA = np.arange(24.0).reshape(6, 4)
SOURCES = {
    "gaps": DATA[:2, :3],
    "backwards": DATA[::-1, ::2],
    "backwards and transposed": DATA[::-1, ::2].T,
    "broadcast": np.broadcast_to(DATA[0], (6, 4)),
}
VIEWS = {
    "expand_dims": lambda x: np.expand_dims(x, 0),
    "flip": lambda x: np.flip(x),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "rot90": lambda x: np.rot90(x),
    "sliding_window_view": lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0),
    "split": lambda x: np.split(x, [1])[1],
    "diagonal": lambda x: np.diagonal(x),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("source", SOURCES)
def test_views_share_the_memory(source, view):
    found = VIEWS[view](ndx.asarray(SOURCES[source]))
    assert isinstance(found, ndx.NDArray)
    assert np.array_equal(found, VIEWS[view](SOURCES[source]))
    assert np.shares_memory(np.asarray(found), SOURCES[source])


@pytest.mark.parametrize("source", SOURCES)
def test_views_beyond_the_memory_are_refused(source):
    x = ndx.asarray(SOURCES[source])
    with pytest.raises(ValueError, match="reaches beyond the memory"):
        face.lib.stride_tricks.as_strided(x, (100,), (8,))


def test_keywords_that_the_methods_lack():
    x = ndx.asarray(DATA)
    assert np.transpose(x, axes=(1, 0)).shape == (4, 6)
    assert np.reshape(x, shape=(3, 8)).shape == (3, 8)
    assert np.array_equal(np.clip(x, a_min=3, a_max=5), np.clip(DATA, 3, 5))


def test_strings_stay_with_numpy():
    strings = np.asarray(["a", "b"], dtype=np.dtypes.StringDType())
    found = face.concatenate([strings, strings])
    assert type(found) is np.ndarray
    assert found.tolist() == ["a", "b"] * 2
    with pytest.raises(TypeError, match="ufunc 'add'"):
        ndx.ones(2) + strings


def test_the_namespace_describes_itself():
    assert face.__array_api_version__ == np.__array_api_version__
    assert face.__array_namespace_info__().default_dtypes()["integral"] == np.int64


@pytest.mark.parametrize("name", ["random", "standard_normal"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_generators_fill_a_given_array(name, dtype):
    x = ndx.zeros((3, 2), dtype=dtype)
    found = getattr(ndx.random.default_rng(1), name)(dtype=dtype, out=x)
    expected = getattr(np.random.default_rng(1), name)((3, 2), dtype)
    assert found is x
    assert np.array_equal(x, expected)


def test_generators_fill_no_array_of_another_dtype():
    with pytest.raises(TypeError, match="wrong type"):
        ndx.random.default_rng(1).random(out=ndx.zeros(3, dtype=ndx.float32))


def test_choices_need_not_be_shuffled():
    found = ndx.random.default_rng(1).choice(9, 4, replace=False, shuffle=False)
    options = {"replace": False, "shuffle": False}
    assert np.array_equal(found, np.random.default_rng(1).choice(9, 4, **options))


class Made:
    """Has the method that NumPy asks for an array."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Described:
    def __init__(self, array):
        self.__array_interface__ = array.__array_interface__
        self.array = array


SHARING = {
    "asarray of a buffer": lambda a: face.asarray(memoryview(a)),
    "array without a copy": lambda a: face.array(memoryview(a), copy=False),
    "frombuffer": lambda a: face.frombuffer(memoryview(a).cast("B"), a.dtype),
    "from_dlpack": lambda a: face.from_dlpack(a, copy=False),
    "__array__": lambda a: face.asarray(Made(a)),
    "__array_interface__": lambda a: face.array(Described(a), copy=False),
    "ndarray": lambda a: face.ndarray(a.shape, a.dtype, memoryview(a)),
    "as_strided": lambda a: face.lib.stride_tricks.as_strided(a, a.shape, a.strides),
    "array.array": lambda a: face.asarray(memoryview(a).cast("B").cast("d")),
}


@pytest.mark.parametrize("way", SHARING)
def test_memory_of_others_is_shared_where_numpy_shares_it(way):
    a = np.zeros(5)
    x = SHARING[way](a)
    assert isinstance(x, ndx.NDArray)
    if way == "from_dlpack" and not since("arrays from DLPack are writable"):
        assert not x.flags.writeable
        x = a
    x[1] = 7
    assert a.tolist() == [0, 7, 0, 0, 0]
    a[2] = 8
    assert x[2] == 8
    del a
    assert x.tolist() == [0, 7, 8, 0, 0]


def test_memory_that_is_read_only_stays_so():
    x = face.frombuffer(b"abcdefgh", "u1")
    assert not x.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 1


def test_a_file_that_is_mapped_by_numpy_is_not_copied(tmp_path):
    mapped = np.memmap(tmp_path / "data", dtype="f8", mode="w+", shape=(10,))
    x = face.asarray(mapped)
    x[3] = 4
    assert mapped[3] == 4


NOT_ALIGNED = {
    "asarray": lambda a: face.asarray(a),
    "asarray without a copy": lambda a: face.asarray(a, copy=False),
    "from_dlpack": lambda a: face.from_dlpack(a),
    "frombuffer": lambda a: face.frombuffer(a.base, "f8", offset=1),
    "__array_interface__": lambda a: face.asarray(Described(a)),
    "ndarray": lambda a: face.ndarray(a.shape, a.dtype, a.base, 1),
    "ravel": lambda a: face.ravel(a),
}


@pytest.mark.parametrize("way", NOT_ALIGNED)
def test_memory_that_is_not_aligned_stays_numpys(way):
    """It is shared all the same: what is written to a copy would be lost."""
    a = np.frombuffer(bytearray(33), "f8", offset=1)
    x = NOT_ALIGNED[way](a)
    assert type(x) is np.ndarray
    if way == "from_dlpack" and not since("arrays from DLPack are writable"):
        assert not x.flags.writeable
        return
    x[1] = 7
    assert a.tolist() == [0, 7, 0, 0]
    assert (face.ones(4) + x).tolist() == [1, 8, 1, 1]
    assert isinstance(face.array(a), ndx.NDArray)


def test_fields_of_records_are_written():
    records = np.zeros(3, [("kind", "u1"), ("value", "f8")])
    face.asarray(records["value"])[1] = 5
    assert records["value"].tolist() == [0, 5, 0]


def test_views_that_are_not_aligned_are_numpys():
    u = ndx.zeros(17, dtype=ndx.uint8)
    z = ndx.zeros(3, dtype=ndx.complex128)
    for view in (u[1:].view("float64"), z.getfield("float64", 4)):
        assert type(view) is np.ndarray
        assert not view.flags.aligned
        view[1] = 1
    assert u[-2:].tolist() == [0xF0, 0x3F]
    assert ndx.any(z[1] != 0)
    assert u[1:].copy().view("float64").tolist() == [0, 1]


def test_a_view_that_is_not_aligned_keeps_memory_of_a_workspace():
    with ndx.workspace("unaligned"):
        view = ndx.zeros(17, dtype=ndx.uint8)[1:].view("float64")
        view[:] = 3
    with ndx.workspace("unaligned"):
        ndx.full(17, 255, dtype=ndx.uint8)
        assert view.tolist() == [3, 3]


def test_memory_of_others_can_not_go_away():
    """NumPy's own `ndarray` does not lock it."""
    data = bytearray(64)
    x = face.ndarray((8,), "f8", data)
    with pytest.raises(BufferError):
        data.extend(b"1" * 1000)
    mapped = mmap.mmap(-1, 4096)
    y = face.ndarray((8,), "f8", mapped)
    with pytest.raises(BufferError):
        mapped.close()
    view = memoryview(bytearray(64))
    z = face.ndarray((8,), "f8", view)
    view.release()
    assert x.sum() == y.sum() == z.sum() == 0
    del x, y
    data.extend(b"1")
    mapped.close()


@needs_part("strides")
@pytest.mark.parametrize("name", ["sliding_window_view", "as_strided"])
def test_views_of_what_numpy_made_of_a_list_are_in_the_workspace(name):
    function = getattr(face.lib.stride_tricks, name)
    with ndx.workspace("views") as ws:
        x = function([1.0, 2.0, 3.0], (2,))
        assert x.workspace == "views"
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    ws.destroy()

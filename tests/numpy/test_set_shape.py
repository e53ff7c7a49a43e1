"""``x.shape = ...`` in place: as NumPy's arrays allow it, while nothing else looks."""

import gc
import sys
import weakref

import numpy as np
import pytest
from helpers.numpy_versions import since
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy as face

LAYOUTS = {
    "contiguous": lambda a: a,
    "transposed": lambda a: a.T,
    "every other": lambda a: a[..., ::2],
    "reversed": lambda a: a[::-1],
    "read-only": lambda a: read_only(a),
    "broadcast": lambda a: a[:1, :, :1, None],
    "no elements": lambda a: a[:0],
}
SHAPES = [
    24, -1, (24,), (2, 12), (12, 2), (4, -1), (2, 3, 4), (4, 3, 2), (1, 24, 1),
    (2, 2, 2, 3), (2, 1, 2, 1, 2, 1, 3, 1), (1,) * 20 + (24,), [6, 4], np.int64(24),
    (3, 4), (6, 2, 1), 12, (0, 3), (0,) * 6, (1, 2, 1), (), (7,), (-1, -1), (5, -1),
    (1,) * 64 + (24,), "ab", 2.5, None, (2, None),
]  # fmt: skip


def read_only(a):
    a.flags.writeable = False
    return a


def outcome(make, shape):
    x = make()
    before = x.shape
    try:
        x.shape = shape
    except (AttributeError, ValueError, TypeError) as error:
        assert x.shape == before
        return type(error), before
    return x.shape, x.strides, np.array(x).tolist(), x.flags.c_contiguous, (
        x.flags.f_contiguous, x.flags.writeable)  # fmt: skip


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: repr(s)[:20])
def test_shapes_are_set_as_numpys(name, shape):
    if shape is None and not since("None is no shape"):
        pytest.skip("NumPy takes it for (), with a warning")

    def made(np_):
        return lambda: LAYOUTS[name](np_.arange(24.0).reshape(2, 3, 4))

    expected = outcome(made(np), shape)
    found = outcome(made(face), shape)
    if isinstance(expected[0], type):
        assert issubclass(found[0], (expected[0], ValueError))
        return
    if 0 in found[0] or name == "broadcast":
        # Strides of axes of length 1, or without elements, mean nothing.
        found, expected = (found[0], found[2:]), (expected[0], expected[2:])
    assert found == expected


def test_a_shape_is_set_many_times():
    x = ndx.arange(24)
    for _ in range(3):
        for shape in ((2, 3, 4), (1,) * 9 + (24,), 24, (2, 1, 2, 1, 2, 1, 3, 1)):
            x.shape = shape
            assert x.reshape(-1).tolist() == list(range(24))
            assert (x + x).sum() == 552
    x.shape = (4, 6)
    x[1, 2] = -1
    assert x.reshape(-1)[8] == -1


class Holder:
    pass


def test_arrays_in_attributes_and_closures():
    holder = Holder()
    holder.x = ndx.arange(6)
    holder.x.shape = (2, 3)
    assert holder.x.tolist() == [[0, 1, 2], [3, 4, 5]]
    y = ndx.arange(6)

    def inner():
        y.shape = (3, 2)

    inner()
    assert y.shape == (3, 2)


def test_views_keep_their_shapes():
    x = ndx.arange(6)
    view = x[:]
    x.shape = (2, 3)
    assert view.shape == (6,)
    x[0, 1] = 7
    assert view[1] == 7


REFUSED = "single reference"


def test_what_reads_the_shape_meanwhile_is_not_changed():
    x = ndx.arange(6)
    for hold in (
        memoryview,
        np.asarray,
        weakref.ref,
        lambda x: [x],
        lambda x: x.flat,
        lambda x: x.flags,
        lambda x: iter(x),
        lambda x: x.reshape,
    ):
        held = hold(x)
        with pytest.raises(AttributeError, match=REFUSED):
            x.shape = (2, 3)
        assert x.shape == (6,)
        del held
    x.shape = (2, 3)
    foreign = ndx.asarray(np.arange(6))
    with pytest.raises(AttributeError, match=r"x\.reshape\(\(2, 3\)\)"):
        foreign.shape = (2, 3)


class Index:
    """Sets the shape of an array while an operation reads it as an index."""

    def __init__(self, find, shape, value):
        self.find, self.shape, self.value = find, shape, value
        self.error = None

    def __index__(self):
        try:
            self.find().shape = self.shape
        except AttributeError as error:
            self.error = str(error)
        return self.value


def test_an_operation_never_sees_two_shapes():
    """Else the last element of a row and of a column would be beyond the memory."""
    arrays = [ndx.zeros((1000, 1))]
    evil = Index(lambda: arrays[0], (1, 1000), 999)
    with pytest.raises(IndexError):
        arrays[0][999, evil]
    assert REFUSED in evil.error
    # The interpreter's stack alone has the array, and a weak reference finds it.
    kept = []

    def make():
        x = ndx.zeros((1000, 1))
        kept.append(weakref.ref(x))
        return x

    evil = Index(lambda: kept[-1](), (1, 1000), 999)
    with pytest.raises(IndexError):
        make()[999, evil]
    assert REFUSED in evil.error

    def found_by_the_collector():
        found = [x for x in gc.get_objects() if isinstance(x, ndx.NDArray)]
        return found.pop()

    evil = Index(found_by_the_collector, (1, 1000), 999)
    with pytest.raises(IndexError):
        ndx.asarray(np.zeros((1000, 1)))[999, evil]
    assert REFUSED in evil.error


def test_stale_arrays_keep_their_shape():
    with ndx.workspace("shape"):
        x = ndx.arange(6)
        x.shape = (2, 3)
        assert x.sum() == 15
    with pytest.raises(ndx.StaleArrayError):
        x.shape = (6,)
    assert x.shape == (2, 3)


def test_fused_functions_are_called_as_they_are():
    def function(x):
        y = x * 2
        y.shape = (2, 3)
        return y + 1

    fused = ndx.fuse(function)
    for _ in range(3):
        assert fused(ndx.arange(6)).tolist() == [[1, 3, 5], [7, 9, 11]]


@given(st.lists(st.sampled_from([(24,), (2, 12), (4, 3, 2), (1, 2, 3, 4, 1, 1)])))
def test_buffers_of_all_shapes(shapes):
    x = ndx.arange(24, dtype="int8")
    for shape in shapes:
        x.shape = shape
        view = memoryview(x)
        assert view.shape == shape
        assert view.tobytes() == bytes(range(24))
        del view
    assert sys.getrefcount(x) <= 2


@pytest.mark.filterwarnings("ignore:Setting the dtype:DeprecationWarning")
@pytest.mark.parametrize(
    "dtype", ["int64", "uint8", "float32", "complex128", "float16", "int16"]
)
def test_dtypes_are_set_as_numpys(dtype):
    expected, found = np.arange(6.0).reshape(3, 2), face.arange(6.0).reshape(3, 2)
    expected.dtype = found.dtype = dtype
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.strides == expected.strides
    assert found.tolist() == expected.tolist()


@pytest.mark.filterwarnings("ignore:Setting the strides:DeprecationWarning")
@pytest.mark.parametrize("strides", [(8, 16), (16, 8), (0, 8), (0, 0)])
def test_strides_are_set_as_numpys(strides):
    expected, found = np.arange(4.0).reshape(2, 2), face.arange(4.0).reshape(2, 2)
    expected.strides = found.strides = strides
    assert found.strides == strides
    assert found.tolist() == expected.tolist()
    with pytest.raises(ValueError, match="beyond the memory"):
        found.strides = (16, 16)


@pytest.mark.parametrize("attribute", ["dtype", "strides"])
def test_what_reads_the_layout_meanwhile_is_not_changed(attribute):
    x = face.arange(6)
    other = {"dtype": "uint64", "strides": (0,)}[attribute]
    held = [x]
    with pytest.raises(AttributeError, match=REFUSED):
        setattr(x, attribute, other)
    assert x.dtype == "int64"
    assert x.strides == (8,)
    del held


@pytest.mark.parametrize(
    "shape", [(5,), ((5,),), (2, 2), ([2, 2],), (2,), (0,), (np.int64(4),), (), (None,)]
)
def test_sizes_are_changed_as_numpys(shape):
    expected, found = np.arange(1, 4), face.arange(1, 4)
    expected.resize(*shape, refcheck=False)
    if sys.version_info >= (3, 14):
        # The interpreter borrows the reference of a name. Of such a call, which binds
        # the method, it is one more, which may be anybody's.
        with pytest.raises(AttributeError, match=REFUSED):
            found.resize(*(7,))
        if len(shape) == 1:
            found.resize(shape[0])
        elif shape:
            found.resize(shape)
    else:
        found.resize(*shape)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tolist() == expected.tolist()
    assert found.flags.c_contiguous
    found += 1
    assert found.tolist() == (expected + 1).tolist()


def test_sizes_that_are_not_changed():
    x = face.arange(6)
    view = x[:3]
    with pytest.raises(ValueError, match=r"np\.resize"):
        x.resize(3)
    with pytest.raises(ValueError, match=r"np\.resize"):
        view.resize(2)
    del view
    held = [x]
    with pytest.raises(AttributeError, match=r"np\.resize"):
        x.resize(3, refcheck=False)
    del held
    exported = np.asarray(x)
    with pytest.raises(ValueError, match=r"np\.resize"):
        x.resize(3)
    del exported
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        x.resize(3)
    x.flags.writeable = True
    x.resize(7)
    assert x.tolist() == [0, 1, 2, 3, 4, 5, 0]
    assert x.base is None
    number = x[1]
    with pytest.raises(TypeError, match="can't be changed"):
        number.resize(2)
    with ndx.workspace("resize"):
        y = face.arange(3)
        y.resize(2)
        assert y.tolist() == [0, 1]
    with pytest.raises(ndx.StaleArrayError):
        y.resize(2)


@pytest.mark.parametrize(
    ("attribute", "value"), [("shape", (1,)), ("dtype", "int64"), ("strides", ())]
)
def test_numbers_have_one_layout(attribute, value):
    number = face.arange(3.0)[1]
    with pytest.raises(AttributeError, match="a number has one layout"):
        setattr(number, attribute, value)
    assert number == 1.0
    assert (number.shape, number.dtype) == ((), "float64")

"""Arithmetic on shapes, strides and axes, as it shows in arrays: NumPy's, exactly."""

import numpy as np
import pytest
from helpers import arrays, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx


@given(patterns.shapes(max_dims=5), st.sampled_from(["int8", "complex128"]))
def test_strides_of_new_arrays(shape, dtype):
    x = ndx.empty(shape, dtype=dtype)
    expected = np.empty(shape, dtype=dtype)
    assert x.shape == expected.shape
    assert (x.size, x.nbytes, x.ndim) == (expected.size, expected.nbytes, expected.ndim)
    if x.size:
        # Of an axis of length 1 any stride will do.
        for length, stride, other in zip(
            shape, x.strides, expected.strides, strict=True
        ):
            assert length == 1 or stride == other


@given(arrays.pairs(max_dims=4))
def test_views_are_as_contiguous_as_numpys(pair):
    _, x = pair
    view = np.asarray(x)
    assert memoryview(x).c_contiguous == view.flags.c_contiguous
    assert memoryview(x).f_contiguous == view.flags.f_contiguous


@given(arrays.pairs(max_dims=4), st.data())
def test_reshaping_makes_a_view_where_numpy_does(pair, data):
    _, x = pair
    view = np.asarray(x)
    count = data.draw(st.sampled_from([(-1,), (x.size,), (1, -1, 1)]))
    shape = count if x.size else (x.size,)
    if data.draw(st.booleans()):
        shape = tuple(data.draw(st.permutations(x.shape)))
    if data.draw(st.booleans()) and x.ndim > 1 and x.size:
        at = data.draw(st.integers(0, x.ndim - 2))
        shape = (*x.shape[:at], x.shape[at] * x.shape[at + 1], *x.shape[at + 2 :])
    try:
        expected = view.reshape(shape, copy=False)
    except ValueError:
        with pytest.raises(ValueError, match="copy=False"):
            ndx.reshape(x, shape, copy=False)
        expected = view.reshape(shape)
    else:
        assert np.shares_memory(ndx.reshape(x, shape, copy=False), x) == bool(x.size)
    assert_same(ndx.reshape(x, shape), expected)


@given(arrays.pairs(max_dims=4), st.sampled_from(["int8", "float64"]))
def test_results_keep_the_order_of_axes(pair, dtype):
    _, x = pair
    like = ndx.empty_like(x, dtype=dtype)
    expected = np.empty_like(np.asarray(x), dtype=dtype)
    if x.size:
        found = [s for s, n in zip(like.strides, x.shape, strict=True) if n > 1]
        wanted = [s for s, n in zip(expected.strides, x.shape, strict=True) if n > 1]
        assert found == wanted


@given(st.lists(patterns.shapes(max_dims=3, max_side=3), max_size=4))
def test_broadcasting_shapes(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="can't be broadcast together"):
            ndx.broadcast_shapes(*shapes)
    else:
        assert ndx.broadcast_shapes(*shapes) == expected


SHAPES = {
    "3": (3,),
    "numpy's int": (np.int64(3), (3,)),
    "list": ([2, 3], (2, 3)),
    "numpy's array": (np.array([2, 3]), (2, 3)),
    "array": (ndx.asarray([2, 3]), (2, 3)),
    "range": (range(3), (0, 1, 2)),
    "none": ((), ()),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_all_kinds(name):
    given_, expected = SHAPES[name] if name != "3" else (3, (3,))
    assert ndx.empty(given_).shape == expected


@pytest.mark.parametrize(
    ("shape", "error", "message"),
    [
        (-1, ValueError, "negative length -1 on axis 0"),
        ((2, -3), ValueError, "negative length -3 on axis 1"),
        (2**63, ValueError, "beyond the address space"),
        ((2**40, 2**40), ValueError, "with 8 bytes an element is beyond"),
        ((0, 2**40, 2**40), ValueError, "beyond the address space"),
        ((1,) * 65, ValueError, "65 axes; an array has at most 64"),
        (1.5, TypeError, "shape must be an int or a sequence of ints, not float"),
        ((1.5,), TypeError, "a length of type float"),
        ("3", TypeError, "a length of type str"),
        (None, TypeError, "not NoneType"),
    ],
)
def test_no_shapes(shape, error, message):
    with pytest.raises(error, match=message):
        ndx.empty(shape)


def test_views_beyond_the_address_space():
    x = ndx.ones(1, dtype="int8")
    for shape in ((2**62, 2**62), (2**40, 2**40, 0)):
        with pytest.raises(ValueError, match=r"\) is beyond the address space"):
            ndx.broadcast_to(x, shape)

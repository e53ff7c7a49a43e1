"""Functions that return views, against NumPy's; each shares its argument's memory."""

import numpy as np
import pytest
from helpers import arrays
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx


def shares(view, base):
    return not base.size or np.shares_memory(np.asarray(view), np.asarray(base))


@given(arrays.pairs(), st.data())
def test_permute_dims(pair, data):
    a, x = pair
    order = data.draw(st.permutations(range(a.ndim)))
    order = [axis - a.ndim * data.draw(st.booleans()) for axis in order]
    result = ndx.permute_dims(x, tuple(order))
    assert_same(result, np.transpose(a, order))
    assert shares(result, x)


@given(arrays.pairs(), st.data())
def test_flip(pair, data):
    a, x = pair
    axis = data.draw(arrays.axes(a.ndim))
    result = ndx.flip(x, axis=axis)
    assert_same(result, np.flip(a, axis))
    assert shares(result, x)


@given(arrays.pairs(max_dims=3), st.data())
def test_reshape(pair, data):
    a, x = pair
    shape = data.draw(st.permutations([*a.shape, 1]))
    copy = data.draw(st.sampled_from([None, True]))
    result = ndx.reshape(x, tuple(shape), copy=copy)
    assert_same(result, np.reshape(a, shape))
    if copy:
        assert not a.size or not shares(result, x)
    assert_same(ndx.reshape(x, (a.size,)), a.reshape(-1))


@given(arrays.pairs(min_side=1), st.data())
def test_reshape_without_a_copy(pair, data):
    a, x = pair
    divisors = [n for n in range(1, a.size + 1) if a.size % n == 0]
    shape = (data.draw(st.sampled_from(divisors)), -1)
    try:
        expected = np.reshape(np.asarray(x), shape, copy=False)
    except ValueError:
        with pytest.raises(ValueError, match="copy=False"):
            ndx.reshape(x, shape, copy=False)
        return
    result = ndx.reshape(x, shape, copy=False)
    assert_same(result, expected)
    assert shares(result, x)


@given(arrays.pairs(max_dims=3), st.data())
def test_expand_dims_and_squeeze(pair, data):
    a, x = pair
    count = data.draw(st.integers(1, 2))
    places = st.integers(-a.ndim - count, a.ndim + count - 1)
    unique = {"unique_by": lambda axis: axis % (a.ndim + count)}
    axis = data.draw(st.lists(places, min_size=count, max_size=count, **unique))
    expanded = ndx.expand_dims(x, axis=tuple(axis))
    assert_same(expanded, np.expand_dims(a, tuple(axis)))
    assert shares(expanded, x)
    assert_same(ndx.squeeze(expanded, tuple(axis)), a)


@given(arrays.pairs(), st.data())
def test_broadcast_to(pair, data):
    a, x = pair
    shape = data.draw(hnp.broadcastable_shapes(a.shape, min_side=0, max_side=4))
    try:
        expected = np.broadcast_to(a, shape)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            ndx.broadcast_to(x, shape)
        return
    result = ndx.broadcast_to(x, shape)
    assert_same(result, expected)
    assert shares(result, x) or not result.size
    if result.size > x.size:
        with pytest.raises(ValueError, match="read-only"):
            result[...] = 0


@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_side=3), st.data())
def test_broadcast_arrays_and_shapes(shapes, data):
    found = [ndx.zeros(shape) for shape in shapes.input_shapes]
    assert ndx.broadcast_shapes(*shapes.input_shapes) == shapes.result_shape
    result = ndx.broadcast_arrays(*found)
    assert type(result) is tuple
    assert [x.shape for x in result] == [shapes.result_shape] * 3
    assert ndx.broadcast_shapes() == ()
    assert ndx.broadcast_arrays() == ()


@given(arrays.pairs(min_dims=1), st.data())
def test_unstack(pair, data):
    a, x = pair
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    found = ndx.unstack(x, axis=axis)
    expected = np.unstack(a, axis=axis)
    assert len(found) == len(expected)
    for result, other in zip(found, expected, strict=True):
        assert_same(result, other)
        assert shares(result, x) or not result.size


@given(arrays.pairs(["complex64", "complex128"]))
def test_parts(pair):
    a, x = pair
    assert_same(ndx.real(x), a.real)
    assert_same(ndx.imag(x), a.imag)
    if a.size:
        ndx.imag(x)[...] = 7.0
        assert np.asarray(x).imag.min() == 7.0


def test_real_of_real_numbers_is_the_array():
    x = ndx.ones(3)
    assert ndx.real(x) is x


X = ndx.ones((2, 3, 1))


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: ndx.permute_dims(X, (0, 1)), ValueError, "not a permutation"),
        (lambda: ndx.permute_dims(X, (0, 1, 1)), ValueError, "named twice"),
        (lambda: ndx.permute_dims(X, (0, 1, 3)), ValueError, "out of range"),
        (lambda: ndx.moveaxis(X, (0, 1), 0), ValueError, "as many"),
        (lambda: ndx.moveaxis(X, 3, 0), ValueError, "out of range"),
        (lambda: ndx.flip(X, axis=3), ValueError, "out of range"),
        (lambda: ndx.squeeze(X, 0), ValueError, "has length 2"),
        (lambda: ndx.squeeze(X, None), TypeError, "needs an axis"),
        (lambda: ndx.expand_dims(X, 4), IndexError, "out of range"),
        (lambda: ndx.expand_dims(X, (0, 0)), ValueError, "named twice"),
        (lambda: ndx.expand_dims(X, tuple(range(64))), ValueError, "at most 64"),
        (lambda: ndx.reshape(X, (4, 2)), ValueError, "6 elements"),
        (lambda: ndx.reshape(X, (-1, -1)), ValueError, "more than one -1"),
        (lambda: ndx.reshape(X, (4, -1)), ValueError, "6 elements"),
        (lambda: ndx.reshape(X, (0, -1)), ValueError, "6 elements"),
        (lambda: ndx.reshape(X, (-2, -3)), ValueError, "negative"),
        (lambda: ndx.broadcast_to(X, (3, 1)), ValueError, "can't be broadcast"),
        (lambda: ndx.broadcast_to(X, (2, 2, 1)), ValueError, "can't be broadcast"),
        (lambda: ndx.broadcast_shapes((2,), (3,)), ValueError, "can't be broadcast"),
        (lambda: ndx.broadcast_arrays(X, ndx.ones((4, 1))), ValueError, "broadcast"),
        (lambda: ndx.unstack(X, axis=3), ValueError, "out of range"),
        (lambda: ndx.matrix_transpose(ndx.ones(3)), ValueError, "2 axes or more"),
        (lambda: ndx.linalg.diagonal(ndx.ones(3)), ValueError, "2 axes or more"),
        (lambda: ndx.tril(ndx.ones(3)), ValueError, "2 axes or more"),
        (lambda: ndx.imag(X), TypeError, "complex"),
        (lambda: ndx.meshgrid(X), ValueError, "one axis"),
        (lambda: ndx.meshgrid(indexing="yx"), ValueError, "'xy' and 'ij'"),
    ],
)
def test_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_meshgrid(count, indexing):
    axes = [np.arange(2.0 + i) for i in range(count)]
    found = ndx.meshgrid(*[ndx.asarray(axis) for axis in axes], indexing=indexing)
    expected = np.meshgrid(*axes, indexing=indexing)
    assert type(found) is tuple
    for result, other in zip(found, expected, strict=True):
        assert_same(result, other)
        result[...] = 0.0

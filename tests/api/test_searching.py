"""Searching, sorting, sets, taking and running totals: as NumPy's."""

import numpy as np
import pytest
from helpers import arrays, dtypes
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_where_with_scalars(dtype):
    condition = ndx.asarray([True, False])
    x = ndx.ones(2, dtype=dtype)
    assert ndx.where(condition, x, True).dtype == dtype
    assert ndx.where(condition, 1, x).dtype == ndx.result_type(x, 1)
    assert ndx.where(condition, x, 2.5).dtype == ndx.result_type(x, 2.5)
    assert ndx.where(condition, x, 1j).dtype == ndx.result_type(x, 1j)
    assert ndx.where(condition, 1, 2.5).tolist() == [1.0, 2.5]
    assert ndx.where(condition, True, 0).dtype == "int64"


def test_where_of_large_arrays():
    x = ndx.arange(100_000.0)
    expected = np.where(np.arange(100_000) % 3 > 0, np.arange(100_000.0), 0.0)
    assert_same(ndx.where(x % 3 > 0, x, 0.0), expected)


def test_descending_sorts_are_stable():
    x = ndx.asarray([1, 0, 1, 0, 1])
    assert ndx.argsort(x, descending=True).tolist() == [0, 2, 4, 1, 3]
    zeros = ndx.asarray([0.0, -0.0, 0.0])
    found = ndx.sort(zeros, descending=True)
    assert ndx.signbit(found).tolist() == [False, True, False]


@given(
    arrays.pairs(min_dims=1, min_side=1), st.sampled_from(dtypes.INTEGERS), st.data()
)
def test_taking(pair, dtype, data):
    a, x = pair
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    length = a.shape[axis]
    low = 0 if dtype in dtypes.UNSIGNED else -length
    indices = data.draw(
        hnp.arrays(dtype, st.integers(0, 5), elements=st.integers(low, length - 1))
    )
    found = ndx.take(x, ndx.asarray(indices), axis=axis)
    assert_same(found, np.take(a, indices.astype(int), axis))
    order = np.argsort(a, axis=axis)
    found = ndx.take_along_axis(x, ndx.asarray(order), axis=axis)
    assert_same(found, np.take_along_axis(a, order, axis))


@pytest.mark.parametrize("name", ["cumulative_sum", "cumulative_prod"])
@given(pair=arrays.pairs(dtypes.NUMERIC, min_dims=1, finite=True), data=st.data())
def test_running_totals(name, pair, data):
    a, x = pair
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    initial = data.draw(st.booleans())
    dtype = data.draw(st.none() | st.just("complex128"))
    found = getattr(ndx, name)(x, axis=axis, include_initial=initial, dtype=dtype)
    expected = getattr(np, name)(a, axis=axis, include_initial=initial, dtype=dtype)
    assert_same(found, expected, rtol=1e-6)


X = ndx.ones((2, 3))
I = ndx.asarray([0, 1])  # noqa: E741


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: ndx.argmax(X, axis=2), ValueError, "out of range"),
        (lambda: ndx.argmax(ndx.ones((0, 2)), axis=0), ValueError, "empty"),
        (lambda: ndx.where(X, X, ndx.ones(2)), ValueError, "can't be broadcast"),
        (lambda: ndx.where(X, "x", X), TypeError, "takes an array"),
        (lambda: ndx.where(True, X, X), TypeError, "takes an array"),
        (lambda: ndx.where(X, ndx.ones(3, dtype="int8"), 300), OverflowError, "int8"),
        (lambda: ndx.nonzero(ndx.ones(())), ValueError, "0d"),
        (lambda: ndx.searchsorted(X, X), ValueError, "one axis"),
        (
            lambda: ndx.searchsorted(I, I, side="middle"),
            ValueError,
            "'left' and 'right'",
        ),
        (lambda: ndx.sort(X, axis=2), ValueError, "out of range"),
        (lambda: ndx.sort(ndx.ones(())), ValueError, "no axes"),
        (lambda: ndx.argsort(X, axis=-3), ValueError, "out of range"),
        (lambda: ndx.take(X, I), ValueError, "needs an axis"),
        (lambda: ndx.take(X, X, axis=0), TypeError, "integer indices"),
        (
            lambda: ndx.take(X, ndx.asarray([2]), axis=0),
            IndexError,
            "index 2 is out of",
        ),
        (
            lambda: ndx.take(X, ndx.asarray([-3]), axis=0),
            IndexError,
            "index -3 is out of",
        ),
        (lambda: ndx.take(X[:0], I, axis=0), IndexError, "length 0"),
        (lambda: ndx.take(X, ndx.asarray([[0]]), axis=0), ValueError, "must have one"),
        (
            lambda: ndx.take(I, ndx.asarray([2**64 - 1])),
            IndexError,
            "18446744073709551615",
        ),
        (lambda: ndx.take_along_axis(X, I[:, None] + 1, axis=0), IndexError, "index 2"),
        (lambda: ndx.take_along_axis(X, X), TypeError, "integer indices"),
        (
            lambda: ndx.take_along_axis(X, ndx.full((2, 1), 2**64 - 1, dtype="uint64")),
            IndexError,
            "out of bounds",
        ),
        (lambda: ndx.cumulative_sum(X), ValueError, "needs an axis"),
        (lambda: ndx.cumulative_sum(X, axis=2), ValueError, "out of range"),
        (lambda: ndx.isin("x", "y"), TypeError, "takes an array"),
    ],
)
def test_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()


# ---- more axes than NumPy's iterators have -----------------------------------


@pytest.mark.parametrize("ndim", [32, 33, 64])
@pytest.mark.parametrize("axis", [0, 7, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_many_axes(ndim, axis, descending):
    small = np.random.default_rng(0).integers(0, 9, (4, 3, 5))
    shape = [1] * ndim
    shape[0], shape[7], shape[-1] = small.shape
    # Not contiguous, so that no iterator takes it for a vector.
    x = ndx.reshape(ndx.asarray(np.repeat(small, 2, axis=2)), (*shape[:-1], 10))
    x = x[..., ::2]
    which = {0: 0, 7: 1, -1: 2}[axis]
    order = np.argsort(-small if descending else small, axis=which, stable=True)
    expected = np.take_along_axis(small, order, which).reshape(shape)
    assert_same(ndx.sort(x, axis=axis, descending=descending), expected)
    found = ndx.argsort(x, axis=axis, descending=descending)
    assert_same(found, order.reshape(shape))
    assert_same(ndx.take_along_axis(x, found, axis=axis), expected)
    assert ndx.sort(x[:, :0], axis=axis).shape == (4, 0, *shape[2:])


# ---- take_along_axis ---------------------------------------------------------


def test_take_along_axis_broadcasts():
    a = np.arange(24).reshape(2, 3, 4)
    indices = np.array([[[1, -1]], [[0, -4]]])
    found = ndx.take_along_axis(ndx.asarray(a), ndx.asarray(indices))
    expected = np.take_along_axis(a, np.broadcast_to(indices, (2, 3, 2)), -1)
    assert_same(found, expected)
    found = ndx.take_along_axis(ndx.asarray(a[:1]), ndx.asarray(indices), axis=2)
    wide = np.broadcast_to(a[:1], a.shape), np.broadcast_to(indices, (2, 3, 2))
    assert_same(found, np.take_along_axis(*wide, 2))


@pytest.mark.parametrize("dtype", dtypes.ALL)
@pytest.mark.parametrize("step", [1, 2, -1])
def test_take_along_axis_of_large_arrays(dtype, step):
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, (300, 700)).astype(dtype)[::step]
    indices = rng.integers(-a.shape[0], a.shape[0], (50, 700))
    with ndx.workspace(size="1MiB"):
        found = ndx.take_along_axis(ndx.asarray(a), ndx.asarray(indices), axis=0)
        assert found.attached
        assert_same(found, np.take_along_axis(a, indices, 0))


@pytest.mark.parametrize("dtype", dtypes.ALL)
@pytest.mark.parametrize("shape", [(3000,), (1, 3000), (2, 3000)])
def test_elements_of_all_sizes_are_taken_along_rows(dtype, shape):
    rng = np.random.default_rng(1)
    a = rng.integers(0, 100, shape).astype(dtype)
    indices = rng.integers(-3000, 3000, shape)
    found = ndx.take_along_axis(ndx.asarray(a), ndx.asarray(indices))
    assert_same(found, np.take_along_axis(a, indices, -1))
    indices = indices.reshape(-1)[:50]
    found = ndx.take(ndx.asarray(a), ndx.asarray(indices), axis=-1)
    assert_same(found, a.take(indices, -1))


@pytest.mark.parametrize("indices", [np.zeros((3, 3), int), np.zeros((2, 1, 3), int)])
def test_take_along_axis_shapes_that_do_not_match(indices):
    with pytest.raises(ValueError, match="take_along_axis: "):
        ndx.take_along_axis(ndx.ones((2, 3)), ndx.asarray(indices))


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32", "float64"])
@pytest.mark.parametrize("size", [5, 300, 40_000])
@pytest.mark.parametrize("special", ["none", "negative zeros", "NaN"])
@pytest.mark.parametrize("descending", [False, True])
def test_a_stable_sort_to_the_last_bit(dtype, size, special, descending):
    rng = np.random.default_rng(size)
    a = rng.integers(0, 9, size).astype(dtype)
    if special == "negative zeros":
        a *= rng.choice([1, -1], size).astype(dtype)
    elif special == "NaN" and a.dtype.kind == "f":
        a[::3] = np.nan
        a[1::9] = -a[::9][: len(a[1::9])]
    found = np.asarray(ndx.sort(ndx.asarray(a), descending=descending))
    wanted = np.sort(a[::-1] if descending else a, kind="stable")
    wanted = wanted[::-1] if descending else wanted
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_numbers_take_the_dtype_of_the_array(dtype):
    """As they do in comparisons."""
    x = ndx.asarray([0.1, 0.5, 0.9], dtype=dtype)
    assert (
        ndx.isin(x, 0.1).tolist() == ndx.equal(x, 0.1).tolist() == [True, False, False]
    )
    assert bool(ndx.isin(0.9, x))
    assert ndx.isin(x, 1).tolist() == [False] * 3
    if dtype != "complex64":
        assert ndx.searchsorted(x, 0.1) == 0
        assert ndx.searchsorted(x, 0.1, side="right") == 1
        assert ndx.searchsorted(x, 0.9) == 2
    z = ndx.asarray([0.1 + 0.1j], dtype=ndx.complex64)
    assert ndx.isin(z, 0.1 + 0.1j).tolist() == [True]
    # Of another kind: not the array's dtype, but one that has both.
    assert ndx.isin(ndx.asarray([0.5, 2.0]), 2 + 0j).tolist() == [False, True]
    assert ndx.isin(ndx.asarray([1, 2]), 1.5).tolist() == [False, False]


def test_integers_beyond_all_floats():
    x = ndx.asarray([-ndx.inf, 1.0, ndx.inf])
    for side in ("left", "right"):
        assert ndx.searchsorted(x, 10**400, side=side) == 2
        assert ndx.searchsorted(x, -(10**400), side=side) == 1
    assert not ndx.any(ndx.isin(x, 10**400))
    assert not ndx.isin(10**400, x)

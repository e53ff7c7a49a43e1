"""Products that leave the range of their dtype: as NumPy's, on every path."""

import os

import numpy as np
import pytest
from helpers.examples import examples
from helpers.numpy_versions import needs_part
from helpers.passes import in_file
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy

MANY = 240_000
SHAPES = [(MANY,), (2, MANY // 2), (MANY // 2, 2), (40, 60, 100), (1, MANY, 1)]
# In another order, these have other products: 0, infinity, numbers, or none of them.
STRETCHES = st.lists(
    st.sampled_from([0.0, 1.0, -2.0, 0.5, 8.0, 1e-30, 1e30]), min_size=1, max_size=5
)


def stretches(values, shape, dtype):
    """Return an array of stretches of equal elements."""
    found = np.repeat(values, -(-MANY // len(values)))[:MANY]
    return found.reshape(shape).astype(dtype)


def assert_product(x, dtype=None, **kwargs):
    with np.errstate(all="ignore"):
        expected = np.prod(np.asarray(x), dtype=dtype, **kwargs)
    found = np.asarray(ndx.prod(x, dtype=dtype and getattr(ndx, dtype), **kwargs))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def repeated(x):
    """Return views in which elements follow each other, and stretches do."""
    return ndx.broadcast_to(x[..., None], (*x.shape, 2)), ndx.broadcast_to(
        x, (2, *x.shape)
    )


@st.composite
def calls(draw):
    shape = draw(st.sampled_from(SHAPES))
    dtype = draw(st.sampled_from(["float64", "float32", "complex128"]))
    values = draw(STRETCHES)
    axis = draw(st.sampled_from([None, 0, -1, tuple(range(len(shape)))]))
    return stretches(values, shape, dtype), axis


@examples(25)
@given(calls())
def test_products_beyond_the_range(call):
    a, axis = call
    x = ndx.asarray(a)
    assert_product(x, axis=axis)
    for y in repeated(x):
        assert_product(y, axis=axis)
    assert_product(x.mT if x.ndim > 1 else x[::2], axis=axis)
    assert_product(x[::-1], axis=axis)
    if a.dtype == "float32":
        assert_product(x, "float64", axis=axis)
        for y in repeated(x):
            assert_product(y, "float64", axis=axis)


@pytest.mark.skipif(os.name != "posix", reason="maps files")
@examples(25)
@given(calls(), st.sampled_from([4096, 65536]), st.sampled_from(["1KiB", "1GiB"]))
def test_products_beyond_the_range_of_arrays_in_files(call, block, memory):
    a, axis = call
    with ndx.use("mmap"):
        x = in_file(a)
    with ndx.passes(threshold=0, block=block, memory=memory):
        for y in (x, *repeated(x)):
            assert_product(y, axis=axis)
            if a.dtype == "float32":
                assert_product(y, "float64", axis=axis)


def test_a_zero_before_an_overflow():
    a = stretches([0.0, 8.0], MANY, "float64")
    with np.errstate(all="ignore"):
        assert np.prod(a) == 0
    assert ndx.prod(ndx.asarray(a)) == 0
    assert np.isnan(float(ndx.prod(ndx.asarray(a[::-1].copy()))))


@pytest.mark.skipif(os.name != "posix", reason="maps files")
def test_a_product_of_parts_while_errors_are_reported():
    a = np.ones(MANY, "float32")
    a[[0, 100_000, -1]] = 2, 3, 5
    with ndx.use("mmap"):
        x = in_file(a)
    with ndx.passes(threshold=0, block=4096), ndx.numpy.errstate(all="raise"):
        assert ndx.prod(x, dtype=ndx.float64) == 30
        assert ndx.prod(x) == 30


@needs_part("loops")
def test_a_product_of_more_equal_elements_than_can_be_read():
    x = ndx.asarray([[0.5], [2.0]])
    many = ndx.broadcast_to(x, (2, 2**58))
    assert ndx.prod(many, axis=1).tolist() == [0.0, float("inf")]
    assert ndx.prod(many, axis=1, dtype=ndx.complex128)[0] == 0
    assert ndx.prod(ndx.broadcast_to(x[0], (2**59,))) == 0


def overflowing(dtype, rows=40_000, columns=30):
    """Return an array of which the sums are finite in order, and infinite in parts."""
    a = np.zeros((rows, columns), dtype)
    largest = np.finfo(dtype).max / 2
    a[0], a[5000], a[5001] = -1.2 * largest, 1.2 * largest, 1.2 * largest
    return a


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("function", ["sum", "mean"])
def test_parts_that_overflow(dtype, function):
    a = overflowing(dtype)
    expected = getattr(np, function)(a, axis=0)
    assert np.all(np.isfinite(expected))
    np.testing.assert_array_equal(
        getattr(ndx, function)(ndx.asarray(a), axis=0), expected
    )
    # In one part, as in all.
    a[7] = np.inf
    found = getattr(ndx, function)(ndx.asarray(a), axis=0)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, getattr(np, function)(a, axis=0))


@pytest.mark.threads
@pytest.mark.skipif(os.name != "posix", reason="maps files")
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("memory", [0, "1GiB"])
@pytest.mark.parametrize("threads", [1, 2])
def test_parts_that_overflow_in_files(dtype, memory, threads):
    a = overflowing(dtype)
    with ndx.use("mmap"):
        x = in_file(a)
    with ndx.passes(threshold=0, block="64KiB", memory=memory, threads=threads):
        np.testing.assert_array_equal(ndx.sum(x, axis=0), np.sum(a, axis=0))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_extremes_of_infinite_complex_numbers(name, dtype):
    """Equal real parts are ordered by the imaginary ones, in parts, too."""
    sign = -1 if name == "max" else 1
    a = np.full((700, 300), complex(sign * np.inf, sign * 5), dtype)
    x = ndx.asarray(a)
    for axis in (None, 0, 1):
        found = getattr(ndx, name)(x, axis=axis)
        np.testing.assert_array_equal(found, getattr(np, name)(a, axis=axis))
    assert bool(ndx.any(x == getattr(ndx, name)(x)))


@pytest.mark.skipif(os.name != "posix", reason="maps files")
def test_extremes_of_infinite_complex_numbers_in_files():
    a = np.full(40_000, complex(-np.inf, -5))
    with ndx.use("mmap"):
        x = in_file(a)
    with ndx.passes(threshold=0, memory=0, block="4KiB"):
        assert ndx.max(x) == complex(-np.inf, -5)


@needs_part("loops")
def test_a_sum_of_negative_zeros_is_one():
    x = ndx.asarray([complex(-0.0, -0.0)] * 3)
    total = complex(ndx.sum(x))
    assert np.signbit(total.real)
    assert np.signbit(total.imag)

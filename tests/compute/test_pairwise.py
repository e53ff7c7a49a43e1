"""Sums of floats: NumPy's, to the last bit, for all lengths and layouts."""

import numpy as np
import pytest
from helpers.numpy_versions import needs
from hypothesis import given
from hypothesis import strategies as st

import ndx

FLOATS = ["float32", "float64"]


def values(n, dtype, seed=0):
    """Return numbers of both signs and of very different sizes."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)).astype(dtype)


def assert_same_bits(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


@pytest.mark.parametrize("dtype", FLOATS)
def test_each_length_in_which_a_stretch_is_halved(dtype):
    whole = values(2200, dtype)
    x = ndx.asarray(whole)
    for n in range(whole.size):
        assert_same_bits(ndx.sum(x[:n]), np.sum(whole[:n]))


@needs("sums of long stretches are pairwise as a whole")
@pytest.mark.threads
@given(
    dtype=st.sampled_from(FLOATS),
    n=st.integers(0, 300_000),
    start=st.integers(0, 9),
    threads=st.sampled_from([1, 2, 5]),
)
def test_long_stretches_on_threads(dtype, n, start, threads):
    whole = values(n + start, dtype, seed=n)[start:]
    before = ndx.get_num_threads()
    ndx.set_num_threads(threads)
    try:
        assert_same_bits(ndx.sum(ndx.asarray(whole)), np.sum(whole))
    finally:
        ndx.set_num_threads(before)


@given(data=st.data(), dtype=st.sampled_from(FLOATS), n=st.integers(1, 400))
def test_special_values(data, dtype, n):
    array = values(n, dtype)
    special = st.sampled_from([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, -1e38])
    for _ in range(data.draw(st.integers(0, 4))):
        array[data.draw(st.integers(0, n - 1))] = data.draw(special)
    with np.errstate(all="ignore"):
        expected = np.sum(array)
    found = np.asarray(ndx.sum(ndx.asarray(array)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(5, 300), (300, 5), (3, 129, 40), (1, 1000), (7, 8)])
def test_rows_and_columns(dtype, shape):
    array = values(np.prod(shape), dtype).reshape(shape)
    x = ndx.asarray(array)
    for axis in range(len(shape)):
        assert_same_bits(ndx.sum(x, axis=axis), np.sum(array, axis=axis))
    assert_same_bits(ndx.sum(x[..., ::-1], axis=-1), np.sum(array[..., ::-1], axis=-1))
    assert_same_bits(ndx.sum(x[..., ::2], axis=-1), np.sum(array[..., ::2], axis=-1))


def test_no_memory_beyond_the_array_is_needed():
    """What is read ahead may lie outside of all mappings."""
    with ndx.use("mmap"):
        for n in (512, 1024, 4096, 65536):
            assert float(ndx.sum(ndx.ones(n))) == n

"""Which elements are in a set: found by comparisons, by a table or by sorting alike."""

import numpy as np
import pytest
from helpers import arrays, dtypes
from hypothesis import given
from hypothesis import strategies as st

import ndx


@given(pair=arrays.pairs(), data=st.data(), invert=st.booleans())
def test_isin_of_any_number_of_elements(pair, data, invert):
    """Around the number from which NumPy's function is called."""
    array, x = pair
    pool = array.ravel() if array.size else np.zeros(1, array.dtype)
    chosen = data.draw(st.lists(st.integers(0, pool.size - 1), max_size=20))
    among = pool[chosen]
    if data.draw(st.booleans()):
        among = among[: among.size // 2 * 2].reshape(2, -1)
    found = ndx.isin(x, ndx.asarray(among, copy=True), invert=invert)
    expected = np.isin(array, among, invert=invert)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(np.asarray(found), expected)


large = st.sampled_from([0, 1, 7, 2**53, 2**63 - 2, 2**63 - 1])
more = st.sampled_from([-1, -2, -7, -(2**53), -(2**63)])
most = st.sampled_from([2**63, 2**63 + 1, 2**64 - 2, 2**64 - 1])


@given(
    st.lists(st.one_of(large, most), max_size=9),
    st.lists(st.one_of(large, more), max_size=30),
    st.booleans(),
)
def test_isin_of_integers_that_no_dtype_holds(unsigned, signed, invert):
    """As floats, the largest are equal to each other, also for NumPy's."""
    # NumPy sorts more than a few.
    signed += range(-40, -20)
    unsigned += range(10**6, 10**6 + 20)
    x = ndx.asarray(np.array(unsigned, np.uint64))
    y = ndx.asarray(np.array(signed, np.int64))
    found = ndx.isin(x, y, invert=invert), ndx.isin(y, x, invert=invert)
    assert found[0].tolist() == [(n in signed) != invert for n in unsigned]
    assert found[1].tolist() == [(n in unsigned) != invert for n in signed]
    assert found[0].dtype == found[1].dtype == ndx.bool


@pytest.mark.parametrize("dtype", dtypes.ALL)
@pytest.mark.parametrize("few", [1, 3, 16, 17])
def test_isin_of_each_dtype(dtype, few):
    values = np.arange(50).astype(dtype)
    for among in (values[:few], values[few::-1], values[:0]):
        found = ndx.isin(ndx.asarray(values), ndx.asarray(among))
        np.testing.assert_array_equal(np.asarray(found), np.isin(values, among))


def test_isin_of_nan_and_zeros():
    x = ndx.asarray([float("nan"), 0.0, -0.0, 1.0])
    among = ndx.asarray([float("nan"), 0.0])
    assert ndx.isin(x, among).tolist() == [False, True, True, False]
    assert ndx.isin(x, among, invert=True).tolist() == [True, False, False, True]


def test_isin_of_other_dtypes():
    x, among = ndx.asarray([1, 2, 300]), ndx.asarray([1, 44], dtype=ndx.uint8)
    assert ndx.isin(x, among).tolist() == [True, False, False]
    assert ndx.isin(x, 300).tolist() == [False, False, True]
    assert ndx.isin(2, x).tolist() is True

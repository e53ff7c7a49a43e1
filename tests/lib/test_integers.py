"""Python's ints where C needs a number: indices, bounds and lengths of any size."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndx

# One digit of a Python int has 30 bits, on some systems 15.
EDGES = sorted(
    {
        sign * edge + step
        for edge in (0, 2**15, 2**30, 2**31, 2**60, 2**62, 2**63, 2**64, 2**90)
        for sign in (-1, 1)
        for step in (-1, 0, 1)
    }
)
numbers = st.sampled_from(EDGES) | st.integers(-8, 8) | st.integers()


@given(start=numbers, stop=numbers, step=numbers.filter(bool) | st.none())
def test_bounds_of_slices(start, stop, step):
    key = slice(start, stop, step)
    x = np.arange(5)
    assert ndx.asarray(x)[key].tolist() == x[key].tolist()


@given(index=numbers)
def test_indices(index):
    x = ndx.arange(5)
    if -5 <= index < 5:
        assert int(x[index]) == range(5)[index]
    else:
        with pytest.raises(IndexError):
            x[index]


@given(length=numbers)
def test_lengths(length):
    byte = ndx.asarray(1, dtype=ndx.int8)
    if 0 <= length < 2**63:
        assert ndx.broadcast_to(byte, (length,)).shape == (length,)
        assert ndx.broadcast_to(byte, length).shape == (length,)
    else:
        with pytest.raises(ValueError, match="length|beyond"):
            ndx.broadcast_to(byte, (length,))


@given(axes=st.permutations([0, 1, 2]) | st.tuples(numbers, numbers, numbers))
def test_axes(axes):
    x = np.empty((2, 3, 4))
    if sorted(axis % 3 if -3 <= axis < 3 else axis for axis in axes) == [0, 1, 2]:
        expected = x.transpose(axes).shape
        assert ndx.permute_dims(ndx.asarray(x), tuple(axes)).shape == expected
    else:
        with pytest.raises((ValueError, IndexError)):
            ndx.permute_dims(ndx.asarray(x), tuple(axes))


@given(value=numbers)
def test_values_of_lists(value):
    if -(2**63) <= value < 2**63:
        assert ndx.asarray([value, 1]).tolist() == [value, 1]
    else:
        # NumPy has other dtypes for some of these, and none for the others.
        with pytest.raises((OverflowError, TypeError, ValueError)):
            ndx.asarray([value, 1], dtype=ndx.int64)

"""Comparisons with Python's integers that the dtype of the array has not."""

import operator

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

COMPARISONS = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
@given(
    dtype=st.sampled_from(dtypes.INTEGERS),
    scalar=st.integers(-(2**70), 2**70) | st.integers(-300, 300),
)
def test_comparisons_with_integers_that_the_dtype_has_not(name, dtype, scalar):
    info = np.iinfo(dtype)
    a = np.array([info.min, 0, 1, 100, info.max], dtype)
    x, operation = ndx.asarray(a), getattr(operator, name)
    assert_same(operation(x, scalar), operation(a, scalar))
    assert_same(operation(scalar, x), operation(scalar, a))
    assert_same(COMPARISONS[name](x, scalar), operation(a, scalar))


@pytest.mark.parametrize("name", ["logical_and", "logical_or", "logical_xor"])
@given(dtype=st.sampled_from(dtypes.INTEGERS), scalar=st.integers(-(2**70), 2**70))
def test_integers_that_the_dtype_has_not_are_true(name, dtype, scalar):
    a = np.array([0, 1, 2], dtype)
    wanted = getattr(np, name)(a, bool(scalar))
    assert_same(getattr(ndx, name)(ndx.asarray(a), scalar), wanted)
    assert_same(getattr(ndx, name)(scalar, ndx.asarray(a)), wanted)

"""Codes, promotion and scalars of all dtypes, through what uses them."""

import ctypes
import itertools

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

NAMES = {
    "bool": [bool, "?", np.bool_, ctypes.c_bool],
    "int8": ["b", np.int8, "i1", ctypes.c_int8],
    "int16": ["h", np.int16, "<i2", "=i2"],
    "int32": [np.int32, "i4", ctypes.c_int32],
    "int64": [int, np.int64, "i8", "q", np.longlong, ctypes.c_int64],
    "uint8": ["B", np.uint8],
    "uint16": ["H", np.uint16],
    "uint32": [np.uint32, "u4"],
    "uint64": [np.uint64, "u8", "Q", np.ulonglong],
    "float16": ["e", np.float16, "f2", "half"],
    "float32": ["f", np.float32, ctypes.c_float],
    "float64": [float, "d", np.float64, ctypes.c_double],
    "complex64": ["F", np.complex64],
    "complex128": [complex, "D", np.complex128],
}


@pytest.mark.parametrize("name", dtypes.ALL)
def test_whatever_names_a_dtype(name):
    for value in (name, np.dtype(name), getattr(ndx, name), *NAMES[name]):
        found = ndx.empty(0, dtype=value).dtype
        assert found is getattr(ndx, name)


@pytest.mark.parametrize(
    "value",
    ["O", "U3", "M8[s]", "m8", "longdouble", ">i4", "V8", "x",
     np.dtype([("a", "i4")]), 3, 1.5, [], b"\xff", object, np.ones(1), ndx.ones(1)],
)  # fmt: skip
def test_what_is_none(value):
    with pytest.raises(TypeError, match=r"is not a dtype of the array API.*complex128"):
        ndx.empty(0, dtype=value)


@pytest.mark.parametrize("first", dtypes.ALL)
@pytest.mark.parametrize("second", dtypes.ALL)
def test_promotion_is_numpys(first, second):
    expected = np.result_type(first, second)
    assert ndx.result_type(getattr(ndx, first), second) == expected
    found = ndx.equal(ndx.zeros(1, dtype=first), ndx.zeros(1, dtype=second))
    assert found.tolist() == [True]
    for name in ("add", "maximum"):
        x = getattr(ndx, name)(ndx.ones(1, dtype=first), ndx.ones(1, dtype=second))
        assert x.dtype == expected


def test_promotion_of_several_is_numpys_in_any_order():
    for names in itertools.product(dtypes.ALL, repeat=3):
        expected = np.result_type(*names)
        assert ndx.result_type(*names) == expected, names


@given(st.lists(st.sampled_from(dtypes.ALL), min_size=1, max_size=5))
def test_joining_promotes_in_any_order(names):
    expected = np.result_type(*names)
    assert ndx.concat([ndx.ones(1, dtype=name) for name in names]).dtype == expected
    assert ndx.stack([ndx.ones(1, dtype=name) for name in names]).dtype == expected


SCALARS = st.sampled_from([True, 1, 1.5, 1j])


@given(st.sampled_from(dtypes.ALL), SCALARS)
def test_scalars_promote_as_numpys(name, scalar):
    found = ndx.multiply(ndx.ones(2, dtype=name), scalar)
    assert_same(found, np.multiply(np.ones(2, dtype=name), scalar))


@pytest.mark.parametrize("name", dtypes.INTEGERS)
def test_integers_at_the_border(name):
    info = np.iinfo(name)
    x = ndx.empty(1, dtype=name)
    for value in (info.min, info.max):
        x[0] = value
        assert x.tolist() == [value]
        assert ndx.full(1, value, dtype=name).tolist() == [value]
        # An operand next to an array is of its dtype.
        assert bool(ndx.equal(x, value)[0])
    for value in (info.min - 1, info.max + 1, 2**64, -(2**63) - 1, 10**30):
        message = rf"{value} does not fit {name} \(from {info.min} to {info.max}\)"
        for use in (
            lambda value=value: ndx.full(1, value, dtype=name),
            lambda value=value: x + value,
            lambda value=value: x.__setitem__(0, value),
        ):
            with pytest.raises(OverflowError, match=message):
                use()


@given(st.complex_numbers(), st.sampled_from(dtypes.COMPLEX))
def test_complex_scalars(number, name):
    with np.errstate(all="ignore"):
        expected = np.full(1, number, dtype=name)
    assert_same(ndx.full(1, number, dtype=name), expected)


@given(st.floats(), st.sampled_from(dtypes.FLOATS))
def test_float_scalars(number, name):
    with np.errstate(all="ignore"):
        expected = np.full(1, number, dtype=name)
    assert_same(ndx.full(1, number, dtype=name), expected)

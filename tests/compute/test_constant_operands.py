"""Operations on an array and one number: equal to those on two arrays."""

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

REAL = ["float64", "float32", "int64", "int32", "int16", "int8", "uint64", "uint8"]
OF_BOOLS = ["logical_and", "logical_or", "bitwise_and", "bitwise_or"]
LENGTHS = [0, 1, 63, 64, 65, 511, 512, 513, 4096, 4097, 9001]


def numbers(length, dtype):
    x = np.random.default_rng(length).integers(-100, 100, length).astype(dtype)
    if x.dtype.kind == "f" and length:
        x[:: max(1, length // 5)] = [np.nan, np.inf, -np.inf, -0.0, 0.5, 7.0][
            : len(x[:: max(1, length // 5)])
        ]
    return x


@examples(150)
@given(st.data())
def test_a_constant_gives_what_an_array_of_it_gives(data):
    name = data.draw(st.sampled_from(["maximum", "minimum", *OF_BOOLS]))
    dtype = data.draw(st.sampled_from(["bool"] if name in OF_BOOLS else REAL))
    length = data.draw(st.sampled_from(LENGTHS))
    values = numbers(length, dtype)
    constant = data.draw(st.sampled_from([0, 1, 5, 100]))
    if values.dtype.kind == "f":
        constant = data.draw(st.sampled_from([0.0, -0.0, 2.5, np.nan, np.inf]))
    function, step = getattr(ndx, name), data.draw(st.sampled_from([1, -1, 2]))
    x = ndx.asarray(np.repeat(values, abs(step)))[::step]
    y = ndx.full((), constant, dtype=x.dtype)
    whole = ndx.full(x.shape, constant, dtype=x.dtype)
    expected = np.asarray(function(x[...], whole)).tobytes()
    assert np.asarray(function(x, y)).tobytes() == expected
    # The first and the second of two zeros may be chosen.
    turned = np.asarray(function(y, x))
    np.testing.assert_array_equal(turned, np.asarray(function(whole, x)))
    out = ndx.empty((*x.shape, 2), dtype=x.dtype)[:, 0]
    function(x, y, out=out)
    assert np.asarray(out).tobytes() == expected
    function(x, y, out=x)
    assert np.asarray(x).tobytes() == expected


@pytest.mark.parametrize("dtype", [*REAL, "bool"])
def test_a_constant_may_be_an_element_of_the_result(dtype):
    values = numbers(5000, dtype)
    x = ndx.asarray(values.copy())
    ndx.maximum(x, x[3], out=x)
    np.testing.assert_array_equal(np.asarray(x), np.maximum(values, values[3]))


@pytest.mark.parametrize("dtype", [*REAL, "bool"])
def test_reductions_are_not_taken_for_constants(dtype):
    values = numbers(5000, dtype)
    x = ndx.asarray(values)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.asarray(ndx.max(x)), np.max(values))
        np.testing.assert_array_equal(np.asarray(ndx.min(x)), np.min(values))

"""Indices that sort: keys of all ranges, many of them equal or nearly so."""

import numpy as np
import pytest

import ndx

SHAPES = [
    (0,),
    (1,),
    (2,),
    (3,),
    (100,),
    (1000,),
    (40000,),
    (5, 7),
    (300, 4),
    (3, 4, 5),
]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324]
ENDS = [-(2**63), 2**63 - 1, 0, 1]


def floats(rng, shape):
    """Yield arrays of floats."""
    normal = rng.standard_normal(shape)
    yield normal
    yield rng.integers(0, 3, shape) * 1.0
    yield normal * 1e300
    yield 1 + normal * 1e-15
    yield np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), normal)
    # More neighbours than there is patience for, beside far larger numbers.
    close = 1 + rng.integers(0, 9, shape) * 2.2e-16
    yield np.where(rng.random(shape) < 0.8, close, normal * 1e100)


def integers(rng, shape):
    """Yield arrays of integers."""
    yield rng.integers(0, 3, shape)
    yield rng.integers(-(2**31), 2**31, shape)
    yield rng.integers(-(2**63), 2**63 - 1, shape)
    yield rng.integers(0, 100, shape) + 2**40
    yield np.zeros(shape, "int64")
    yield rng.choice(ENDS, shape)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "dtype", ["int32", "int64", "uint32", "uint64", "float32", "float64", "int8"]
)
def test_stable_order(dtype, shape):
    rng = np.random.default_rng(0)
    for values in (floats if dtype[0] == "f" else integers)(rng, shape):
        with np.errstate(all="ignore"):
            a = values.astype(dtype)
        for axis in range(a.ndim):
            for x in (a, a[::-1], np.asfortranarray(a)):
                expected = np.argsort(x, axis=axis, kind="stable")
                found = ndx.argsort(ndx.asarray(x), axis=axis)
                np.testing.assert_array_equal(np.asarray(found), expected)

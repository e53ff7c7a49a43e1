"""Distinct elements of small, large and special arrays, beside NumPy's."""

import numpy as np
import pytest

import ndx

SHAPES = [(0,), (), (1,), (10,), (100,), (7, 8), (50000,), (200, 300)]
DTYPES = ["bool", "int8", "int16", "uint32", "int64", "uint64", "float16", "float32",
          "float64", "complex128"]  # fmt: skip


@pytest.mark.parametrize("distinct", [2, 5, 1000])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts(dtype, shape, distinct):
    rng = np.random.default_rng(0)
    a = np.asarray(rng.integers(0, distinct, shape)).astype(dtype)
    if dtype[0] == "f" and a.size > 3:
        a.flat[1], a.flat[3] = np.nan, -0.0
    for x in (a, a.T, a[::-1] if a.ndim else a):
        for name in ("unique_all", "unique_inverse", "unique_counts"):
            found = getattr(ndx, name)(ndx.asarray(x))
            expected = getattr(np, name)(x)
            assert type(found) is type(expected)
            for one, other in zip(found, expected, strict=True):
                assert one.shape == other.shape
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(np.asarray(one), other)
        values = np.asarray(ndx.unique_values(ndx.asarray(x)))
        np.testing.assert_array_equal(values, np.unique(x, equal_nan=False))


def test_each_nan_is_distinct():
    x = ndx.asarray([np.nan, 1.0, np.nan, 1.0])
    found = ndx.unique_all(x)
    assert str(found.values.tolist()) == "[1.0, nan, nan]"
    assert found.indices.tolist() == [1, 0, 2]
    assert found.inverse_indices.tolist() == [1, 0, 2, 0]
    assert found.counts.tolist() == [2, 1, 1]


@pytest.mark.parametrize("repeats", [1, 20_000])
def test_bools_of_other_bytes(repeats):
    """Foreign memory may have any byte for True; the values are two all the same."""
    a = np.tile(np.array([0, 1, 2, 255, 128, 0], np.uint8), repeats).view(bool)
    for given in (a, a[::-1], a.reshape(-1, 2).T):
        x = ndx.asarray(given)
        assert ndx.unique_values(x).tolist() == [False, True]
        assert ndx.unique_counts(x).counts.tolist() == [2 * repeats, 4 * repeats]
        found = ndx.unique_all(x)
        np.testing.assert_array_equal(
            np.asarray(found.inverse_indices).reshape(given.shape), given
        )
    assert a.view(np.uint8)[3] == 255

"""Comparing arrays with NumPy's."""

import numpy as np

import ndx


def values(x):
    """Return a NumPy copy of an NDArray (or of what NumPy takes)."""
    return np.array(x, copy=True)


def assert_same(found, expected, *, rtol=0.0, atol=0.0):
    """Check dtype, shape and values, NaN and the sign of zero included."""
    assert isinstance(found, ndx.NDArray)
    expected = np.asarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    found = values(found)
    if rtol or atol:
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, expected)
        if expected.dtype.kind == "f":
            real = ~np.isnan(expected)
            np.testing.assert_array_equal(
                np.signbit(found)[real], np.signbit(expected)[real]
            )

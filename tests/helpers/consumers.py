"""Calls of libraries that take arrays of any namespace: the same for NumPy and ndx."""

import contextlib
import re

import numpy as np
import pytest

import ndx
from ndx.testing import assert_allclose, assert_equal

_rng = np.random.default_rng(20251)
VECTOR = _rng.random(20)
OTHER = _rng.random(20)
MATRIX = _rng.random((6, 4))
COUNTS = np.asarray([3, 1, 4, 1, 5, 9, 2, 6])
LABELS = (_rng.random(30) > 0.5).astype(np.int64)
FEATURES = _rng.random((30, 4)) + LABELS[:, None] / 4
TARGETS = FEATURES @ np.asarray([1.0, 2.0, 3.0, 4.0]) + _rng.random(30) / 10


def leaves(result):
    """Return the arrays and numbers of a result, which may be nested."""
    if isinstance(result, dict):
        result = tuple(result.values())
    elif not isinstance(result, tuple | list) and hasattr(result, "__dict__"):
        result = tuple(vars(result).values())
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in leaves(item)]
    return [result]


def check(call, *operands, rtol=1e-9, atol=1e-12, returns=ndx.NDArray):
    """Check that a call gives NDArrays of NDArrays, and the values that NumPy's do.

    What is an array (or NumPy scalar) with NumPy's operands must be of the type
    `returns`; None for calls that give numbers.
    """
    expected = leaves(call(np, *[x.copy() for x in operands]))
    found = leaves(call(ndx, *[ndx.asarray(x, copy=True) for x in operands]))
    assert expected
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        if isinstance(b, np.ndarray | np.generic) and returns is not None:
            assert isinstance(a, returns)
        if isinstance(b, np.ndarray | np.generic | int | float):
            if isinstance(b, np.ndarray) and b.dtype.kind in "iub":
                assert_equal(a, b)
            else:
                typed = returns is not None
                assert_allclose(a, b, rtol=rtol, atol=atol, check_dtype=typed)


@contextlib.contextmanager
def limitation(error, match, reason):
    """Skip where a consumer asks for more than the standard has; else pass."""
    try:
        yield
    except error as caught:
        if not re.search(match, str(caught)):
            raise
        pytest.skip(reason)

"""Results of calls that are written as text, compared with NumPy's."""

import warnings
from operator import attrgetter

import numpy as np

import ndx
from helpers.numpy_versions import since

__all__ = ["SUPPORTED", "compare", "evaluate", "ours"]

SUPPORTED = [np.dtype(c) for c in "?bhilqBHILQefdFD"]


def evaluate(namespace, name, call, arrays, given=None):
    """Return the result of a call written as text, or the error."""
    function = attrgetter(name)(namespace)
    names = {**arrays, "np": given or namespace}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            args, kwargs = eval(f"(lambda *a, **k: (a, k))({call})", names)
            return function(*args, **kwargs), None
    except Exception as error:
        return None, error


def close(found, expected):
    if expected.dtype.kind in "SUO":
        assert np.array_equal(found, expected)
        return
    rtol = {"float16": 1e-3, "float32": 1e-5, "complex64": 1e-5}.get(
        expected.dtype.name, 1e-12
    )
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol / 10)


def compare(found, expected, *, scalars):
    """Compare results item by item; arrays are to be NDArrays."""
    if isinstance(expected, np.ndarray):
        if expected.dtype not in SUPPORTED:
            assert type(found) is type(expected)
            found_there = found
        else:
            assert isinstance(found, ndx.NDArray)
            assert found.backend is not None or found.base is not None or not found.size
            found_there = np.asarray(found)
        assert found_there.dtype == expected.dtype
        assert found_there.shape == expected.shape
        close(found_there, expected)
    elif isinstance(expected, np.generic):
        if isinstance(found, ndx.NDArray):
            assert scalars
            assert found.shape == ()
        assert found.dtype == expected.dtype
        close(np.asarray(found), expected)
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other, scalars=scalars)
    elif isinstance(expected, np.poly1d):
        compare(np.asarray(found), np.asarray(expected), scalars=scalars)
    elif isinstance(found, ndx.NDArray) and type(expected) is int:
        # Of `count_nonzero`, and of nothing else.
        assert not since("count_nonzero returns NumPy's integers")
        assert found == expected
    else:
        assert type(found) is type(expected)
        if not isinstance(expected, np.broadcast):
            assert found == expected


def ours(where):
    """Return NDArrays of the examples, in the current placement."""
    return {name: ndx.asarray(x, copy=True) for name, x in where.items()}

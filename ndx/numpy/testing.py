"""NumPy's `numpy.testing`, which takes arrays of ndx."""

import functools as _functools

import numpy as _np
from numpy import testing as _testing
from numpy.testing import *

from ndx._core import NDArray as _NDArray
from ndx._numpy import namespace as _namespace


def _as_numpys(value):
    """Return a value with NumPy's arrays and scalars in place of NDArrays."""
    if isinstance(value, _NDArray):
        return _np.asarray(value)[()]
    if isinstance(value, (list, tuple)):
        # Also one with named items, as `slogdet` returns it.
        kind = list if isinstance(value, list) else tuple
        return kind(map(_as_numpys, value))
    if type(value) is dict:
        return {key: _as_numpys(item) for key, item in value.items()}
    return value


def _taking_arrays(function):
    """Return a function that compares arrays of ndx as NumPy's own.

    Only for arrays of NumPy's class do these compare element by element.
    """

    @_functools.wraps(function)
    def compare(actual, desired, *args, **kwargs):
        __tracebackhide__ = True
        return function(_as_numpys(actual), _as_numpys(desired), *args, **kwargs)

    return compare


assert_equal = _taking_arrays(_testing.assert_equal)
assert_almost_equal = _taking_arrays(_testing.assert_almost_equal)
assert_approx_equal = _taking_arrays(_testing.assert_approx_equal)


def __getattr__(name):
    return _namespace.missing(__name__, _testing, name)

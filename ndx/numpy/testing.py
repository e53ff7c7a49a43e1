"""NumPy's `numpy.testing`, which takes arrays of ndx."""

import functools as _functools

import numpy as _np
from numpy import testing as _testing
from numpy.testing import *

from ndx._core import NDArray as _NDArray
from ndx._lib.trees import map_tree as _map_tree
from ndx._numpy import namespace as _namespace


def _as_numpys(value):
    """Return NumPy's array or scalar of an NDArray; other values as they are."""
    return _np.asarray(value)[()] if isinstance(value, _NDArray) else value


def _taking_arrays(function):
    """Return a function that compares arrays of ndx as NumPy's own.

    Only for arrays of NumPy's class do these compare element by element.
    """

    @_functools.wraps(function)
    def compare(actual, desired, *args, **kwargs):
        __tracebackhide__ = True
        return function(
            _map_tree(_as_numpys, actual),
            _map_tree(_as_numpys, desired),
            *args,
            **kwargs,
        )

    return compare


assert_equal = _taking_arrays(_testing.assert_equal)
assert_almost_equal = _taking_arrays(_testing.assert_almost_equal)
assert_approx_equal = _taking_arrays(_testing.assert_approx_equal)


def __getattr__(name):
    return _namespace.missing(__name__, _testing, name)

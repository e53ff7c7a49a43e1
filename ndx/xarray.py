"""NDArrays in xarray.

Nobody has to import this module: ndx does when xarray is imported. xarray has no table
in which another package could register its arrays. So functions of xarray are replaced
by ones that do the same, but for NDArrays:

- xarray computes by the functions of an array's namespace, and expects many there that
  NumPy has and the standard has not (`pad`, `quantile`, `einsum`, `std` with ``ddof``).
  CuPy and JAX have one namespace for both; here xarray is given `ndx.numpy`.
- Points are selected as from NumPy's arrays. The standard knows no such indexing.
- What SciPy interpolates from NDArrays is an NDArray again.

A version of xarray without these functions is left as it is.

Examples
--------
>>> import ndx, xarray
>>> x = xarray.DataArray(ndx.asarray([1.0, 2.0, 4.0]), dims="time")
>>> x.quantile(0.5).data
NDArray(2.)
"""

import functools
import sys
import types

import ndx.numpy
from ndx._api.creation_from_data import asarray
from ndx._core import NDArray
from ndx._numpy.wrappers import NumPyFunction

__all__ = ["register"]


def _as_array(function):
    """Return a function whose result without axes is an array, not a number."""

    @functools.wraps(function)
    def compute(*args, **kwargs):
        found = function(*args, **kwargs)
        return asarray(found) if isinstance(found, NDArray) else found

    return compute


class _Arrays(types.ModuleType):
    """`ndx.numpy` for xarray, which would make NumPy's array of a number."""

    def __getattr__(self, name):
        value = getattr(ndx.numpy, name)
        if isinstance(value, NumPyFunction):
            value = _as_array(value)
        setattr(self, name, value)
        return value


_ARRAYS = _Arrays("ndx.numpy")


def _namespace(find):
    """Return a `get_array_namespace` that finds `ndx.numpy` in place of `ndx`."""

    def get_array_namespace(*values):
        found = find(*values)
        return _ARRAYS if found is ndx else found

    return get_array_namespace


def _interpolation(interpolate):
    """Return a function that interpolates from NDArrays to NDArrays."""

    def interpolated(data, *coordinates, **options):
        result = interpolate(data, *coordinates, **options)
        return asarray(result, copy=True) if isinstance(data, NDArray) else result

    return interpolated


def _points(method):
    """Return a method that selects points of NDArrays as xarray does of NumPy's."""

    def select(self, *args):
        if not isinstance(self.array, NDArray):
            return method(self, *args)
        indexing = sys.modules["xarray.core.indexing"]
        alike = indexing.NdArrayLikeIndexingAdapter(self.array)
        return getattr(alike, method.__name__)(*args)

    return select


# (a module of xarray, a class in it or nothing, a name there, what it becomes)
_REPLACED = (
    ("xarray.compat.array_api_compat", "", "get_array_namespace", _namespace),
    ("xarray.core.duck_array_ops", "", "get_array_namespace", _namespace),
    ("xarray.core.nputils", "", "get_array_namespace", _namespace),
    ("xarray.ufuncs", "", "get_array_namespace", _namespace),
    ("xarray.core.missing", "", "_interpnd", _interpolation),
    ("xarray.core.indexing", "ArrayApiIndexingAdapter", "_vindex_get", _points),
    ("xarray.core.indexing", "ArrayApiIndexingAdapter", "_vindex_set", _points),
)


def register():
    """Replace the functions in those modules of xarray that have been imported."""
    for module, inside, name, change in _REPLACED:
        owner = sys.modules.get(module)
        owner = getattr(owner, inside, None) if inside else owner
        known = getattr(owner, name, None)
        if known is not None and known.__module__ != __name__:
            named = ("__doc__", "__name__", "__qualname__")
            setattr(owner, name, functools.wraps(known, assigned=named)(change(known)))

"""NDArrays in xarray.

Nobody has to import this module: ndx does when xarray is imported. xarray computes by
the functions of an array's namespace, of which it expects many of NumPy's that the
standard does not have (`pad`, `quantile`, `einsum`, `std` with ``ddof``, ...). CuPy and
JAX have one namespace for both; here it is `ndx.numpy`. xarray has no table to say so:
its function that finds the namespace is replaced by one that returns `ndx.numpy`
instead of `ndx`.

Examples
--------
>>> import ndx, xarray
>>> x = xarray.DataArray(ndx.asarray([1.0, 2.0, 4.0]), dims="time")
>>> x.quantile(0.5).data
NDArray(2.)
"""

import functools
import sys

import ndx.numpy

__all__ = ["register"]

# The modules of xarray that have the function; the first defines it for the next two.
_MODULES = (
    "xarray.compat.array_api_compat",
    "xarray.core.duck_array_ops",
    "xarray.core.nputils",
    "xarray.ufuncs",
)
_NAME = "get_array_namespace"


def _with_numpy_names(find):
    """Return `find`, but for `ndx.numpy` in place of `ndx`."""

    @functools.wraps(find, assigned=("__doc__", "__name__", "__qualname__"))
    def get_array_namespace(*values):
        found = find(*values)
        return ndx.numpy if found is ndx else found

    return get_array_namespace


def register():
    """Let those modules of xarray that have been imported compute by `ndx.numpy`."""
    for name in _MODULES:
        module = sys.modules.get(name)
        find = getattr(module, _NAME, None)
        if find is not None and find.__module__ != __name__:
            setattr(module, _NAME, _with_numpy_names(find))

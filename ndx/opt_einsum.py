"""NDArrays in opt_einsum, which xarray uses where it is installed.

Nobody has to import this module: ndx does when opt_einsum is imported. opt_einsum takes
the functions that it needs from the package of an array's class. For NDArrays these are
in `ndx.numpy`: the standard has no `einsum`.

Examples
--------
>>> import ndx, opt_einsum
>>> x = ndx.ones((2, 3))
>>> opt_einsum.contract("ij,kj,k->i", x, x, ndx.ones(2))
NDArray([6., 6.])
"""

from opt_einsum.backends import dispatch

__all__ = ["register"]


def register():
    """Register the namespace of NDArrays with opt_einsum."""
    dispatch._aliases["ndx"] = "ndx.numpy"

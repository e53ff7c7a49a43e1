"""NDArrays in h5py.

Nobody has to import this module: ndx does when h5py is imported. ``read_direct`` and
``write_direct`` of datasets take objects of NumPy's class only, and are replaced by
methods that take NDArrays, too. All else in h5py takes them as it is.

Examples
--------
>>> import h5py, ndx
>>> with h5py.File("example.h5", "w") as file:  # doctest: +SKIP
...     file["x"] = ndx.arange(3.0)
...     file["x"].read_direct(x := ndx.zeros(3))
>>> x  # doctest: +SKIP
NDArray([0., 1., 2.])
"""

import functools

import numpy as np
from h5py._hl.dataset import Dataset

from ndx._core import NDArray

__all__ = ["register"]


def _with_views(method):
    """Return a method that is given a NumPy view of its first argument."""

    @functools.wraps(method, assigned=("__doc__", "__name__", "__qualname__"))
    def direct(self, array, *args, **kwargs):
        if isinstance(array, NDArray):
            array = np.asarray(array)
        return method(self, array, *args, **kwargs)

    return direct


def register():
    """Let the methods of datasets take NDArrays."""
    for name in ("read_direct", "write_direct"):
        method = getattr(Dataset, name)
        if method.__module__ != __name__:
            setattr(Dataset, name, _with_views(method))

"""NDArrays in h5py.

Nobody has to import this module: ndx does when h5py is imported. ``read_direct`` and
``write_direct`` of datasets, and masks, have to be of NumPy's class, and are given as
views of NDArrays instead. All else in h5py takes NDArrays as it is.

Examples
--------
>>> import h5py, ndx
>>> with h5py.File("example.h5", "w") as file:  # doctest: +SKIP
...     file["x"] = ndx.arange(3.0)
...     file["x"].read_direct(x := ndx.zeros(3))
>>> x  # doctest: +SKIP
NDArray([0., 1., 2.])
"""

from ndx._borders import ITEMS, VIEW, Border, install

__all__ = ["BORDERS", "register"]

BORDERS = (
    Border("h5py._hl.dataset:Dataset", "read_direct", {"dest": VIEW}),
    Border("h5py._hl.dataset:Dataset", "write_direct", {"source": VIEW}),
    Border("h5py._hl.dataset:Dataset", "__getitem__ __setitem__", {"args": ITEMS}),
)


def register():
    """Let the methods of datasets take NDArrays."""
    install("h5py", BORDERS)

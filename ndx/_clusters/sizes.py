"""The bytes that dask counts for an NDArray.

Nobody has to import this module: ndx does when ``dask.sizeof`` is imported.
"""

import math

from dask.sizeof import sizeof

import ndx

__all__ = ["held_nbytes", "register"]


def held_nbytes(x):
    """Return the bytes of an array's elements; those along a repeated axis count once.

    It reads no data: the array may be stale.
    """
    lengths = [
        min(length, 1) if stride == 0 else length
        for length, stride in zip(x.shape, x.strides, strict=True)
    ]
    return math.prod(lengths) * x.dtype.itemsize


def register():
    """Register the size of NDArrays with dask."""
    sizeof.register(ndx.NDArray, held_nbytes)

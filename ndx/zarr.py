"""NDArrays that are read from zarr.

Nobody has to import this module: ndx does when zarr is imported. Everything in zarr
that stores arrays takes NDArrays as it is. Reading gives NumPy's arrays, but with this
in zarr's configuration, which is the name of a class here:

>>> import ndx, zarr
>>> x = zarr.array(ndx.arange(3.0))
>>> with zarr.config.set({"ndbuffer": "ndx.zarr.NDBuffer"}):
...     x[1:]
NDArray([1., 2.])
"""

from zarr.core.buffer import cpu
from zarr.registry import register_ndbuffer

import ndx.numpy

__all__ = ["NDBuffer", "register"]


class NDBuffer(cpu.NDBuffer):
    """The memory in which zarr decodes chunks: NDArrays.

    Arrays of dtypes that no NDArray has, such as strings, stay NumPy's.
    """

    @classmethod
    def create(cls, *, shape, dtype, order="C", fill_value=None):
        """Return a filled buffer; zeros by default."""
        value = 0 if fill_value is None else fill_value
        return cls(ndx.numpy.full(tuple(shape), value, dtype=dtype, order=order))

    @classmethod
    def empty(cls, shape, dtype, order="C"):
        """Return a buffer of undefined content."""
        return cls(ndx.numpy.empty(tuple(shape), dtype=dtype, order=order))

    def __getitem__(self, key):
        return type(self)(self._data[key])


def register():
    """Register the class of buffers with zarr."""
    register_ndbuffer(NDBuffer)

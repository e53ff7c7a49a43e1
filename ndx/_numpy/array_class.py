"""`ndx.numpy.ndarray`: NumPy's constructor of arrays, for NDArrays."""

from types import GenericAlias

import numpy as np

from ndx._core import NDArray
from ndx._numpy.calls import call_function

__all__ = ["ndarray"]


class _ArrayType(type):
    """Lets `isinstance` and `issubclass` take NDArrays for `ndarray`."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, NDArray)

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, NDArray)

    def __getattr__(cls, name):
        return getattr(NDArray, name)


class ndarray(metaclass=_ArrayType):
    """The type of arrays in `ndx.numpy`; calling it makes an `ndx.NDArray`.

    Parameters
    ----------
    shape : int or tuple of int
        The shape.
    dtype : dtype, default float
        The dtype.
    buffer : buffer, optional
        Memory of another object to use, uncounted. Default: new memory, not
        initialised.
    offset : int
        Bytes from the start of `buffer`.
    strides : tuple of int, optional
        Bytes between elements along each axis.
    order : {'C', 'F'}
        The order of the elements, without `strides`.

    Notes
    -----
    NumPy's class: https://numpy.org/doc/stable/reference/generated/numpy.ndarray.html
    ``isinstance(x, ndarray)`` is true of every NDArray. The class has no subclasses.
    """

    def __new__(
        cls, shape, dtype=float, buffer=None, offset=0, strides=None, order=None
    ):
        return call_function(np.ndarray, shape, dtype, buffer, offset, strides, order)

    # For annotations, as `ndarray[tuple[int], dtype[float64]]`.
    __class_getitem__ = classmethod(GenericAlias)

    def __init_subclass__(cls, **kwargs):
        msg = "NDArray has no subclasses; keep an array as an attribute instead"
        raise TypeError(msg)

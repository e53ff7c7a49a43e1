"""`ndarray` and `ufunc` of `ndx.numpy`: names for NumPy's classes and ours."""

import types

import numpy as np

from ndx._core import NDArray
from ndx._numpy.calls import call_function
from ndx._numpy.wrappers import NumPyUfunc

__all__ = ["ndarray", "ufunc"]


class _ArrayType(type):
    """Lets `isinstance` and `issubclass` take NumPy's arrays and ours for `ndarray`.

    A number of ours is none, as NumPy's scalars are none. A subclass is one of NumPy's
    class, since NDArray has none.
    """

    def __new__(mcs, name, bases, namespace, **kwargs):
        if not any(isinstance(base, mcs) for base in bases):
            return super().__new__(mcs, name, bases, namespace, **kwargs)
        bases = tuple(np.ndarray if isinstance(each, mcs) else each for each in bases)
        return types.new_class(name, bases, kwargs, lambda own: own.update(namespace))

    def __instancecheck__(cls, instance):
        return type(instance) is NDArray or isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass):
        return subclass in (NDArray, cls) or issubclass(subclass, np.ndarray)

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
    ``isinstance(x, ndarray)`` is true of NDArrays, but not of numbers, and of NumPy's
    arrays. ``class Mine(ndarray)`` is a subclass of NumPy's class.
    """

    def __new__(
        cls, shape, dtype=float, buffer=None, offset=0, strides=None, order=None
    ):
        if issubclass(cls, np.ndarray):
            return np.ndarray.__new__(cls, shape, dtype, buffer, offset, strides, order)
        return call_function(np.ndarray, shape, dtype, buffer, offset, strides, order)

    # For annotations, as `ndarray[tuple[int], dtype[float64]]`.
    __class_getitem__ = classmethod(types.GenericAlias)


class _UfuncType(type):
    """Lets `isinstance` take NumPy's ufuncs and ours for `ufunc`."""

    def __instancecheck__(cls, instance):
        return isinstance(instance, (NumPyUfunc, np.ufunc))

    def __subclasscheck__(cls, subclass):
        return issubclass(subclass, (NumPyUfunc, np.ufunc))


class ufunc(metaclass=_UfuncType):
    """The type of ufuncs in `ndx.numpy`; it makes none.

    Notes
    -----
    NumPy's class: https://numpy.org/doc/stable/reference/generated/numpy.ufunc.html
    """

    def __new__(cls):
        msg = "a ufunc is made by numpy.frompyfunc, or in C"
        raise TypeError(msg)

"""Classes of `ndx.numpy` in place of NumPy's: of arrays, ufuncs and some scalars."""

import functools
import types

import numpy as np

from ndx._core import NDArray
from ndx._numpy.wrappers import NumPyUfunc, call_function

__all__ = ["ndarray", "timedelta64", "ufunc", "void"]


class _Subclass(np.ndarray):
    """The base of classes that are derived from `ndarray`."""

    def view(self, *args, **kwargs):
        args = map(_numpys_class, args)
        kwargs = {key: _numpys_class(value) for key, value in kwargs.items()}
        return call_function(np.ndarray.view, self, *args, **kwargs)


def _numpys_class(value):
    """Return NumPy's class of arrays for our `ndarray`, and other objects unchanged."""
    return np.ndarray if value is ndarray or value is NDArray else value


class _ArrayType(type):
    """Lets `isinstance` and `issubclass` take NumPy's arrays and ours for `ndarray`.

    Numbers are no instances, as NumPy's scalars are none. A subclass of `ndarray` is
    derived from NumPy's class, since NDArray has no subclasses. The class is equal to
    NDArray, as the type of our arrays, and as a key of tables by class.
    """

    def __new__(mcs, name, bases, namespace, **kwargs):
        if not any(isinstance(base, mcs) for base in bases):
            return super().__new__(mcs, name, bases, namespace, **kwargs)
        bases = tuple(_Subclass if isinstance(each, mcs) else each for each in bases)
        return types.new_class(name, bases, kwargs, lambda own: own.update(namespace))

    def __eq__(cls, other):
        return cls is other or other is NDArray

    def __hash__(cls):
        return hash(NDArray)

    def __instancecheck__(cls, instance):
        return type(instance) is NDArray or isinstance(instance, np.ndarray)

    def __subclasscheck__(cls, subclass):
        return subclass in (NDArray, cls) or issubclass(subclass, np.ndarray)


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


def _either(name, numpys):
    """Return a method or attribute of NumPy's class that takes arrays of ours, too."""

    def attribute(self):
        return getattr(self, name)

    @functools.wraps(numpys)
    def method(self, *args, **kwargs):
        function = numpys if isinstance(self, np.ndarray) else getattr(NDArray, name)
        return function(self, *args, **kwargs)

    return method if callable(numpys) else property(attribute, doc=numpys.__doc__)


for _name, _numpys in vars(np.ndarray).items():
    if _name not in vars(ndarray) and _numpys is not None:
        setattr(ndarray, _name, _either(_name, _numpys))


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


class _ScalarType(type):
    """Lets a class stand for one of NumPy's scalar classes, from which it is derived.

    Calls make objects of NumPy's class, from numbers of ours, too: NumPy knows its own
    scalars by their classes alone.
    """

    def __call__(cls, *args, **kwargs):
        if isinstance(cls.__base__, _ScalarType):
            return super().__call__(*args, **kwargs)
        return call_function(cls.__base__, *args, **kwargs)

    def __eq__(cls, other):
        return cls is other or other is cls.__base__

    def __hash__(cls):
        return hash(cls.__base__)

    def __instancecheck__(cls, instance):
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass):
        if isinstance(cls.__base__, _ScalarType):
            return super().__subclasscheck__(subclass)
        return issubclass(subclass, cls.__base__)


def _standing_in(numpys):
    """Return a class that stands for a scalar class of NumPy."""
    own = {"__doc__": numpys.__doc__, "__module__": __name__}
    return _ScalarType(numpys.__name__, (numpys,), own)


timedelta64 = _standing_in(np.timedelta64)
void = _standing_in(np.void)

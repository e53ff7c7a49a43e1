"""The narrow door to NumPy, for what has no direct loop.

Chapters name a function of NumPy's; it computes on NumPy views of our arrays, and its
results become ours. No floating-point warning gets out.

From version 2 on, NumPy's own functions are those of the standard, but for what the
chapters see to; so `array_api_compat.numpy`, which takes longer to import than all
else, has nothing to add.
"""

from operator import attrgetter, index

import numpy as np

from ndx._array.dispatch cimport any_on_device, device_engine
from ndx._array.storage cimport BaseArray, check, check_usable, is_array, numpy_view
from ndx._compute.elementwise cimport as_operand
from ndx._compute.numpy_private cimport restore, silence
from ndx._compute.numpy_results cimport call_numpy, own_result, recheck_views
from ndx._lib.layout cimport items_of, normalize_axis

__all__ = [
    "argument", "as_int", "axes_of", "axis_index", "call", "host_argument", "into",
    "on_device", "on_views",
]

cdef dict functions = {}

cdef enum:
    MOST_BITS = 8192


cpdef BaseArray argument(object x, str name):
    """Return the array that `x` is, or that is over the memory of NumPy's `x`.

    The caller looks whether the array is on a device, or calls what does so.

    Raises
    ------
    TypeError
        If `x` is no array; the message names the function, `name`.
    StaleArrayError
        If the scope that `x` was made in has ended.
    """
    cdef BaseArray result = as_operand(x)
    if result is None:
        raise TypeError(
            f"{name} takes an array, not {type(x).__name__}; convert with ndx.asarray")
    if result.block.device:
        check_usable(result)
    else:
        check(result)
    return result


cpdef BaseArray host_argument(object x, str name):
    """The same for functions that compute on the CPU only; others' arrays raise."""
    cdef BaseArray result = argument(x, name)
    check(result)
    return result


def axis_index(axis, int ndim):
    """Return an axis of an array of `ndim` axes counted from the front, or raise."""
    return normalize_axis(axis, ndim)


def as_int(value, str what):
    """Return a Python int of what can be an index, or raise; `what` it is to be."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if number.bit_length() > MOST_BITS:
        # Which no message could show.
        raise ValueError(
            f"{what} is an int of {number.bit_length()} bits; of no use here are more "
            f"than {MOST_BITS}")
    return number


def axes_of(axis, str what="axis"):
    """Return a tuple of the ints that are in a sequence, or of a single one."""
    try:
        number = index(axis)
    except TypeError:
        pass
    else:
        return (as_int(number, what),)
    return tuple([as_int(item, what) for item in items_of(axis, what)])


cdef object find(object name):
    """Return the function that a name stands for, or that is given itself."""
    function = functions.get(name) if type(name) is str else name
    if function is None:
        function = functions[name] = attrgetter(name)(np)
    return function


cdef object unwrapped(object x):
    """Return a NumPy view, which pins, of an array; and of those in sequences."""
    if is_array(x):
        return numpy_view(<BaseArray>x)
    if type(x) is list or type(x) is tuple:
        return type(x)([unwrapped(item) for item in x])
    return x


cdef object wrapped(object x):
    """Return NumPy's arrays and scalars as arrays; tuples item by item."""
    if isinstance(x, (np.ndarray, np.generic)):
        return own_result(np.asarray(x))
    if isinstance(x, tuple):
        items = [wrapped(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, list):
        return tuple([wrapped(item) for item in x])
    return x


cdef object keywords(dict kwargs):
    return {key: unwrapped(value) for key, value in kwargs.items()}


def call(function, /, *args, **kwargs):
    """Return what NumPy's function computes, in memory of the current backend.

    Of arrays of a device, what its engine computes by that name.

    Parameters
    ----------
    function : str or callable
        A name in ``numpy``, with dots: ``"linalg.inv"``; or a method of an object of
        NumPy's.
    *args, **kwargs
        Arrays, alone or in lists and tuples, are passed as NumPy views.

    Returns
    -------
    NDArray, or a tuple (a named one where NumPy returns that)
        Individually owned, and stamped with the workspace's generation; a view of an
        argument remains one.
    """
    if any_on_device(args):
        return device_engine().compute(function, *args, **kwargs)
    return wrapped(call_numpy(find(function), unwrapped(args), keywords(kwargs)))


def on_device(function, /, *args, **kwargs):
    """Return what the engine of devices computes by a name of the namespace."""
    return device_engine().compute(function, *args, **kwargs)


def into(out, function, /, *args, **kwargs):
    """Let NumPy's function compute into `out`, which is returned.

    Parameters
    ----------
    out : NDArray
        Of the shape and the dtype of the result; new, so that nothing overlaps it.
    function, *args, **kwargs
        As for `call`.
    """
    views = unwrapped((out, *args)), keywords(kwargs)
    token = silence()
    try:
        find(function)(*views[0][1:], out=views[0][0], **views[1])
    finally:
        restore(token)
    recheck_views(views)
    return out


def on_views(function, /, *args, **kwargs):
    """Return ``function(*args, **kwargs)`` with NumPy views for arrays, as it is."""
    return call_numpy(function, unwrapped(args), keywords(kwargs))

"""Calls of NumPy's functions, for operations without a direct loop.

Chapters name a function of NumPy's. It computes on NumPy views of our arrays, and its
results become ours. Floating-point warnings are silenced.

Since version 2, NumPy's functions are those of the standard, and the chapters handle
the differences. So `array_api_compat.numpy`, which is slow to import, is not needed.
"""

from operator import attrgetter, index

import numpy as np

from ndx._array.dispatch cimport answer, any_on_device, engine_for
from ndx._array.storage cimport (
    BaseArray, is_array, numpy_view, require_live, require_usable,
)
from ndx._compute.elementwise cimport as_operand, computes_itself
from ndx._compute.numpy_results cimport call_numpy, own_result, recheck_views
from ndx._lib.dtypes cimport is_numpy_scalar
from ndx._lib.layout cimport items_of, normalize_axis
from ndx._lib.numpy_private cimport restore, silence

__all__ = [
    "argument", "as_int", "axes_of", "axis_index", "call", "host_argument", "into",
    "on_device", "on_views",
]

cdef dict functions = {}

cdef enum:
    MOST_BITS = 8192
    MOST_ORDINARY = 1 << 30


cpdef BaseArray argument(object x, str name):
    """Return `x`, or an array over the memory of NumPy's `x`.

    The caller checks whether the array is on a device.

    Raises
    ------
    TypeError
        If `x` is not an array; the message names the function, `name`.
    StaleArrayError
        If the scope that `x` was made in has ended.
    """
    cdef BaseArray result = x if is_array(x) else None if computes_itself(x) \
        else as_operand(x)
    if result is None:
        raise TypeError(
            f"{name} takes an array, not {type(x).__name__}; convert with ndx.asarray")
    if result.block.device:
        require_usable(result)
    else:
        require_live(result)
    return result


cpdef BaseArray host_argument(object x, str name):
    """Like `argument`, for functions of the CPU only; arrays on a device raise."""
    cdef BaseArray result = argument(x, name)
    require_live(result)
    return result


def axis_index(axis, int ndim):
    """Return an axis of an array of `ndim` axes as a number from 0, or raise."""
    return normalize_axis(axis, ndim)


def as_int(value, str what):
    """Return an index as a Python int, or raise an error that names it `what`."""
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if number.bit_length() > MOST_BITS:
        # The number is too long for a message.
        raise ValueError(
            f"{what} is an int of {number.bit_length()} bits; of no use here are more "
            f"than {MOST_BITS}")
    return number


cdef bint are_axes(tuple items) except -1:
    """Whether all items are ints of an ordinary size."""
    for item in items:
        if type(item) is not int or not -MOST_ORDINARY < item < MOST_ORDINARY:
            return False
    return True


def axes_of(axis, str what="axis"):
    """Return a tuple of ints from a sequence of them or a single one."""
    if type(axis) is tuple and are_axes(axis):
        return axis
    try:
        number = index(axis)
    except TypeError:
        pass
    else:
        return (as_int(number, what),)
    return tuple([as_int(item, what) for item in items_of(axis, what)])


cdef object find(object name):
    """Return the function with a name, or the function itself."""
    function = functions.get(name) if type(name) is str else name
    if function is None:
        function = functions[name] = attrgetter(name)(np)
    return function


cdef object view_or_same(object x):
    """Return a NumPy view, which pins, of an array; anything else as it is."""
    return numpy_view(<BaseArray>x) if is_array(x) else x


cdef tuple views(tuple args):
    return tuple([view_or_same(x) for x in args])


cdef object wrapped(object x):
    """Return NumPy's arrays and scalars as arrays; tuples item by item."""
    if isinstance(x, np.ndarray) or is_numpy_scalar(x):
        return own_result(np.asarray(x))
    if isinstance(x, tuple):
        items = [wrapped(item) for item in x]
        return type(x)(*items) if hasattr(x, "_fields") else tuple(items)
    if isinstance(x, list):
        return tuple([wrapped(item) for item in x])
    return x


cdef dict keywords(dict kwargs):
    return {key: view_or_same(value) for key, value in kwargs.items()}


def call(function, /, *args, **kwargs):
    """Return the result of NumPy's function, in memory of the current backend.

    For arrays on a device, return the result of its engine's function of that name.

    Parameters
    ----------
    function : str or callable
        A name in ``numpy``, with dots: ``"linalg.inv"``; or a method of a NumPy
        object.
    *args, **kwargs
        Arrays are passed as NumPy views.

    Returns
    -------
    NDArray, or a tuple (a named one where NumPy returns that)
        Individually owned, and stamped with the workspace's generation. A view of an
        argument stays a view.
    """
    if any_on_device(args):
        return on_device(function, *args, **kwargs)
    return wrapped(call_numpy(find(function), views(args), keywords(kwargs)))


def on_device(function, /, *args, **kwargs):
    """Return the result of the engine's function with a name of the namespace."""
    engine = engine_for(function, (args, kwargs))
    # Some functions return tuples, or numbers.
    return answer(engine, function, engine.compute(function, *args, **kwargs), False)


def into(out, function, /, *args, **kwargs):
    """Compute NumPy's function into `out`, and return it.

    Parameters
    ----------
    out : NDArray
        A new array (so that nothing overlaps it), of the result's shape and dtype.
    function, *args, **kwargs
        As for `call`.
    """
    target, given, named = view_or_same(out), views(args), keywords(kwargs)
    token = silence()
    try:
        find(function)(*given, out=target, **named)
    finally:
        restore(token)
    recheck_views((target, given, named))
    return out


def on_views(function, /, *args, **kwargs):
    """Return ``function(*args, **kwargs)``, called with NumPy views, unchanged."""
    return call_numpy(function, views(args), keywords(kwargs))

"""Calls of CuPy's functions, by the names of the standard.

They are those of ``array_api_compat.cupy``. What CuPy does otherwise than the standard
and the CPU is mended where it is called: `operations`, `elements`, `chapters`.
"""

from operator import attrgetter, index

import numpy as np

from ndx._compute.numpy_calls import axes_of, axis_index
from ndx._core import NDArray
from ndx._cuda import capture, capture_functions
from ndx._cuda.bridge import device_index
from ndx._cuda.session import common_device
from ndx.backends import _cupy

__all__ = ["factored", "function_of", "operand", "standard"]

_found = {}


def function_of(name):
    """Return the function of a name in CuPy's namespace of the standard."""
    for_graph = capture_functions.function_of(name)
    if for_graph is not None:
        return for_graph
    library = _cupy.namespace()
    key = name, id(library)
    if key not in _found:
        _found[key] = attrgetter(name)(library)
    return _found[key]


def standard(name, /, *args, **kwargs):
    """Compute a function as ``array_api_compat.cupy`` does."""
    session = common_device(name, args, kwargs)
    args = [_plain(x) for x in args]
    kwargs = {key: _plain(x) for key, x in kwargs.items()}
    if args and isinstance(args[0], NDArray):
        for key in kwargs.keys() & {"axis", "axes"}:
            kwargs[key] = _axes(kwargs[key], args[0].ndim)
    return session.compute(function_of(name), *args, **kwargs)


def factored(name, reason):
    """Return a function that factorises matrices, and raises where that can't be.

    CuPy would return what it has; to know, the CPU waits for the GPU.

    Parameters
    ----------
    name : str
        As for `standard`.
    reason : str
        What is said of a matrix that has no such factors.
    """

    def function(*args, **kwargs):
        if capture.is_capturing():
            return standard(name, *args, **kwargs)
        try:
            with _cupy.errstate(linalg="raise"):
                return standard(name, *args, **kwargs)
        except np.linalg.LinAlgError as error:
            if "Error reported by" not in str(error):
                raise
            msg = f"{name}: {reason}"
            raise np.linalg.LinAlgError(msg) from error

    return function


def _axes(axes, ndim):
    """Return axes as CuPy takes them; raise ValueError if one is out of range."""
    if axes is None:
        return None
    found = axes_of(axes)
    for axis in found:
        axis_index(axis, ndim)
    return index(axes) if isinstance(axes, int) else found


def _plain(x):
    """Return sequences of ints as tuples, which CuPy wants for axes and shapes."""
    if isinstance(x, list) and all(isinstance(i, (int, np.integer)) for i in x):
        return tuple(index(i) for i in x)
    return index(x) if isinstance(x, np.integer) else x


def operand(session, x, dtype):
    """Return an operand as CuPy takes it, in the dtype of the operation."""
    if device_index(x) is None:
        return dtype.type(x)
    array = session.unwrap(x)
    return array if array.dtype == dtype else array.astype(dtype)

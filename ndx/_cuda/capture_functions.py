"""How functions are computed for a captured graph where CuPy's can't be captured.

In the eager call that precedes the capture, too: so it takes the same memory, and has
loaded the same kernels.
"""

from operator import index

import numpy as np

from ndx._cuda import capture, cublas
from ndx.backends import _cupy

__all__ = ["function_of"]

_MOST_JOINED = 8  # of more small arrays, CuPy copies a list of addresses to the GPU


def function_of(name):
    """Return a function of CuPy's arrays for a graph, by its name; or None.

    None, too, if this thread neither captures nor is about to.
    """
    return None if capture.current() is None else _FUNCTIONS.get(name)


def matmul(a, b, /):
    """Multiply matrices; CuPy's own kernels do so for integers and two vectors."""
    if not _is_refused(a, b) or a.ndim == b.ndim == 1:
        return _cupy.namespace().matmul(a, b)
    dtype = np.promote_types(a.dtype, b.dtype)
    return cublas.product(
        capture.current().products.handle, _cast(a, dtype), _cast(b, dtype)
    )


def vecdot(a, b, /, *, axis=-1):
    """Multiply vectors with each other, and sum; integers as in `matmul`."""
    if not _is_refused(a, b):
        return _cupy.namespace().vecdot(a, b, axis=axis)
    library = _cupy.load()
    if a.shape[axis] != b.shape[axis]:
        msg = (
            f"vecdot: axis {axis} has length {a.shape[axis]} in the first array and "
            f"{b.shape[axis]} in the second; vectors are not broadcast"
        )
        raise ValueError(msg)
    a, b = library.moveaxis(a, axis, -1), library.moveaxis(b, axis, -1)
    dtype = np.promote_types(a.dtype, b.dtype)
    a = library.conj(a) if a.dtype.kind == "c" else a
    return library.sum(_cast(a, dtype) * b, axis=-1, dtype=dtype)


def concat(arrays, /, *, axis=0):
    """Join arrays along an axis: many of them each in its place."""
    if len(arrays) <= _MOST_JOINED:
        return _cupy.namespace().concat(arrays, axis=axis)
    if axis is None:
        arrays, axis = [x.reshape(-1) for x in arrays], 0
    shape = list(arrays[0].shape)
    axis = _inside("concat", axis, len(shape))
    for x in arrays:
        others = list(x.shape)
        others[axis : axis + 1] = shape[axis : axis + 1]
        if others != shape or x.ndim != len(shape):
            msg = (
                f"concat: arrays of shapes {arrays[0].shape} and {x.shape} differ in "
                f"another axis than {axis}"
            )
            raise ValueError(msg)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    dtype = np.result_type(*[x.dtype for x in arrays])
    out = _cupy.load().empty(tuple(shape), dtype=dtype)
    start = 0
    for x in arrays:
        end = start + x.shape[axis]
        out[(slice(None),) * axis + (slice(start, end),)] = x
        start = end
    return out


def stack(arrays, /, *, axis=0):
    """Join arrays along a new axis."""
    if len(arrays) <= _MOST_JOINED:
        return _cupy.namespace().stack(arrays, axis=axis)
    shapes = {x.shape for x in arrays}
    if len(shapes) > 1:
        msg = f"stack: arrays of shapes {sorted(shapes)} are not alike"
        raise ValueError(msg)
    axis = _inside("stack", axis, arrays[0].ndim + 1)
    place = (slice(None),) * axis + (None,)
    return concat([x[place] for x in arrays], axis=axis)


def _is_refused(a, b):
    """Whether CuPy computes a product of such numbers by cuBLAS."""
    return a.dtype.kind in "fc" or b.dtype.kind in "fc"


def _cast(x, dtype):
    return x if x.dtype == dtype else x.astype(dtype)


def _inside(name, axis, ndim):
    """Return an axis counted from the front; raise ValueError if it is out of range."""
    if not -ndim <= index(axis) < ndim:
        msg = f"{name}: axis {axis} is out of range for a result of {ndim} axes"
        raise ValueError(msg)
    return axis % ndim


_FUNCTIONS = {"concat": concat, "matmul": matmul, "stack": stack, "vecdot": vecdot}

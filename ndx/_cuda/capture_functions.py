"""Replacements in captured graphs for functions that CuPy can't capture.

The eager warm-up call uses them, too, so that it allocates the same memory and loads
the same kernels. Operands are of one dtype.
"""

from ndx._cuda import cublas
from ndx._cuda.capture_state import current
from ndx.backends import _cupy

__all__ = ["FUNCTIONS"]

_MOST_JOINED = 8  # of more small arrays, CuPy copies a list of addresses to the GPU


def matmul(a, b, /):
    """Multiply matrices; integers, and two vectors, by CuPy's own kernels."""
    if a.dtype.kind not in "fc" or a.ndim == b.ndim == 1:
        return _cupy.namespace().matmul(a, b)
    return cublas.product(current().products.handle, a, b)


def vecdot(a, b, /):
    """Multiply vectors with each other, and sum; integers as in `matmul`."""
    if a.dtype.kind not in "fc":
        return _cupy.namespace().vecdot(a, b)
    library = _cupy.load()
    a = library.conj(a) if a.dtype.kind == "c" else a
    return library.sum(a * b, axis=-1, dtype=a.dtype)


def concat(arrays, /, *, axis):
    """Join arrays of one dtype along an axis; many arrays are copied one by one."""
    if len(arrays) <= _MOST_JOINED:
        return _cupy.namespace().concat(arrays, axis=axis)
    shape = list(arrays[0].shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    out = _cupy.load().empty(tuple(shape), dtype=arrays[0].dtype)
    start = 0
    for x in arrays:
        end = start + x.shape[axis]
        out[(slice(None),) * axis + (slice(start, end),)] = x
        start = end
    return out


FUNCTIONS = {"concat": concat, "matmul": matmul, "vecdot": vecdot}

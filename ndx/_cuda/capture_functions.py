"""How functions are computed for a captured graph where CuPy's can't be captured.

In the eager call that precedes the capture, too: so it takes the same memory, and has
loaded the same kernels.
"""

import numpy as np

from ndx._cuda import cublas
from ndx._cuda.capture_state import current
from ndx.backends import _cupy

__all__ = ["FUNCTIONS"]


def matmul(a, b, /):
    """Multiply matrices; CuPy's own kernels do so for integers and two vectors."""
    if not _is_refused(a, b) or a.ndim == b.ndim == 1:
        return _cupy.namespace().matmul(a, b)
    dtype = np.promote_types(a.dtype, b.dtype)
    return cublas.product(current().products.handle, _cast(a, dtype), _cast(b, dtype))


def vecdot(a, b, /):
    """Multiply vectors with each other, and sum; integers as in `matmul`."""
    if not _is_refused(a, b):
        return _cupy.namespace().vecdot(a, b)
    library = _cupy.load()
    dtype = np.promote_types(a.dtype, b.dtype)
    a = library.conj(a) if a.dtype.kind == "c" else a
    return library.sum(_cast(a, dtype) * b, axis=-1, dtype=dtype)


def _is_refused(a, b):
    """Whether CuPy computes a product of such numbers by cuBLAS."""
    return a.dtype.kind in "fc" or b.dtype.kind in "fc"


def _cast(x, dtype):
    return x if x.dtype == dtype else x.astype(dtype)


FUNCTIONS = {"matmul": matmul, "vecdot": vecdot}

"""Euclidean norms: roots of sums of squares."""

from ndx._array.storage cimport BaseArray
from ndx._compute.complex_parts cimport part
from ndx._compute.copies cimport cast
from ndx._compute.elementwise cimport binary, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.reductions cimport reduce
from ndx._lib.dtypes cimport FLOAT64, KIND_COMPLEX, KIND_FLOAT, kind_of

__all__ = ["euclidean_norm"]

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc CONJ = find_ufunc("conj")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SQRT = find_ufunc("sqrt")


cdef BaseArray euclidean(BaseArray x, object axis, bint keepdims):
    """Return the norms over axes (None: all), as NumPy computes them.

    None: other layouts, whose elements NumPy adds in another order, and arrays on a
    device.
    """
    cdef BaseArray squares, total
    if x.block.device or not x.c_contiguous:
        return None
    if kind_of[x.dtype] < KIND_FLOAT:
        x = cast(x, FLOAT64)
    if kind_of[x.dtype] == KIND_COMPLEX:
        squares = part(binary(MULTIPLY, unary(CONJ, x, None), x, None), 0)
    else:
        squares = binary(MULTIPLY, x, x, None)
    total = reduce(ADD, squares, axis, keepdims)
    return unary(SQRT, total, total)


def euclidean_norm(x, axis, keepdims):
    """Return the norms over axes (None: all); None: it is left to NumPy."""
    return euclidean(x, axis, keepdims)

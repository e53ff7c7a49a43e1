"""Axes of broadcast views along which one element is repeated: it is read once.

A view of stride 0 may be longer than any loop ends. What combines its elements takes
one of them, and then what as many of these make.
"""

from ndx._array.storage cimport BaseArray, same_view, set_layout
from ndx._compute.elementwise cimport binary
from ndx._compute.loops cimport Ufunc
from ndx._lib.layout cimport MAXDIMS, parse_axes


cdef Py_ssize_t repeats(BaseArray x, object axis) except -1:
    """Return how often each element comes along the axes (None: all)."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t count = 1
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        # An array without elements has other strides.
        if chosen[i] and x.strides[i] == 0:
            count *= x.shape[i]
    return count


cdef BaseArray distinct(BaseArray x, object axis):
    """Return a view without the repetitions along the axes, of the same axes."""
    cdef bint chosen[MAXDIMS]
    cdef BaseArray view = same_view(x)
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        if chosen[i] and x.strides[i] == 0:
            view.shape[i] = 1
    set_layout(view)
    return view


cdef BaseArray combined(Ufunc ufunc, BaseArray x, Py_ssize_t count):
    """Return what an operation makes of `count` (1 or more) arrays that equal `x`.

    By doubling, so that sums are as good as pairwise ones.
    """
    cdef BaseArray total = None, power = x
    if ufunc.name != "add" and ufunc.name != "multiply":
        # Of two that are the same: that.
        return x
    while True:
        if count & 1:
            total = power if total is None else binary(ufunc, total, power, None)
        count >>= 1
        if count == 0:
            return total
        power = binary(ufunc, power, power, None)

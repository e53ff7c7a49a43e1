"""Reductions along broadcast axes (stride 0): a repeated element is read once.

Such a view may be too long for any loop. A reduction takes one of the equal elements
and combines copies of it by doubling.
"""

from ndx._array.storage cimport BaseArray, same_view, set_layout
from ndx._compute.elementwise cimport binary
from ndx._compute.folds cimport is_in_order
from ndx._compute.loops cimport Ufunc
from ndx._lib.layout cimport MAXDIMS, parse_axes

cdef enum:
    IN_ORDER = 1 << 28           # elements that are reduced in less than a second


cdef Py_ssize_t repeats(BaseArray x, object axis) except -1:
    """Return how often each element is repeated along the axes (None: all)."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t count = 1
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        # Arrays without elements may have other strides.
        if chosen[i] and x.strides[i] == 0:
            count *= x.shape[i]
    return count


cdef Py_ssize_t combinable(Ufunc ufunc, int dtype, BaseArray x, object axis) except -1:
    """Return how many copies of each element a reduction may combine by doubling.

    It is 1 for operations whose result depends on the order of the elements, unless
    these are so many that a reduction in order would take too long.
    """
    return 1 if is_in_order(ufunc, dtype) and x.size <= IN_ORDER else repeats(x, axis)


cdef BaseArray distinct(BaseArray x, object axis):
    """Return a view in which the repeated axes have length 1."""
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
    """Return `count` (1 or more) copies of `x`, combined by an operation.

    Doubling makes sums as exact as pairwise ones.
    """
    cdef BaseArray total = None, power = x
    if ufunc.name != "add" and ufunc.name != "multiply":
        # The operation is idempotent.
        return x
    while True:
        if count & 1:
            total = power if total is None else binary(ufunc, total, power, None)
        count >>= 1
        if count == 0:
            return total
        power = binary(ufunc, power, power, None)

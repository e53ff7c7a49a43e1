"""Whether arrays, or the elements of one array, share memory.

Answers are safe: where finding out would take long, memory counts as shared.
"""

from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray, data_of, strided
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport MAXDIMS, Strided, byte_bounds, magnitude


cdef bint is_distinct(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                      Py_ssize_t nbytes) noexcept nogil:
    """Whether no two items of a layout, of `nbytes` each, share memory."""
    cdef int order[MAXDIMS]
    cdef Py_ssize_t step, extent = nbytes
    cdef int axis, count = 0, i
    for axis in range(ndim - 1, -1, -1):
        if shape[axis] == 0:
            return True
        if shape[axis] == 1:
            continue
        i = count
        while i > 0 and magnitude(strides[order[i - 1]]) > magnitude(strides[axis]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = axis
        count += 1
    # From the shortest step on, each step has to lead past all items so far.
    for i in range(count):
        step = magnitude(strides[order[i]])
        if step < extent:
            return False
        extent += step * (shape[order[i]] - 1)
    return True


cdef bint has_distinct_elements(BaseArray x) noexcept:
    """Whether no two elements of an array share memory."""
    return x.c_contiguous or is_distinct(
        x.ndim, x.shape, x.strides, itemsize_of[x.dtype])


cdef bint touches(BaseArray x, BaseArray y) noexcept:
    """Whether two arrays may share memory."""
    cdef Strided a, b
    cdef Py_ssize_t low_a = 0, high_a = 0, low_b = 0, high_b = 0
    if x.block != y.block and <PyObject *>x.base == NULL and <PyObject *>y.base == NULL:
        return False
    strided(x, &a)
    strided(y, &b)
    byte_bounds(&a, itemsize_of[a.dtype], &low_a, &high_a)
    byte_bounds(&b, itemsize_of[b.dtype], &low_b, &high_b)
    return a.data + low_a < b.data + high_b and b.data + low_b < a.data + high_a


cdef bint overlaps(BaseArray out, BaseArray x) noexcept:
    """Whether a write to `out`, element by element, may change what is yet to be read.

    It can't if both are the same elements, each of which has memory of its own.
    """
    cdef int axis
    if out is x:
        return not has_distinct_elements(x)
    if not touches(out, x):
        return False
    if data_of(out) != data_of(x) or out.ndim != x.ndim or \
            itemsize_of[out.dtype] != itemsize_of[x.dtype]:
        return True
    for axis in range(out.ndim):
        if out.shape[axis] != x.shape[axis] or out.strides[axis] != x.strides[axis]:
            return True
    return not has_distinct_elements(out)

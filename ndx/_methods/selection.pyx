"""Masks and index arrays as keys: the common ones, without NumPy.

What is not known here is refused, as is an index out of bounds. Then NumPy selects, and
raises its errors. No user code runs here, so that none is run twice: slices count only
with ints.
"""

cimport numpy as cnp
from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray, from_numpy, is_array
from ndx._compute.advanced_indexing cimport (
    MOST_INDICES, compress, gather, places_of, put_masked, scatter,
)
from ndx._lib.dtypes cimport BOOL, KIND_UINT, kind_of

cdef extern from "Python.h":
    bint PySlice_Check(object o) noexcept
    bint PyLong_CheckExact(object o) noexcept
    ctypedef struct PySliceObject:
        PyObject *start
        PyObject *stop
        PyObject *step

ENDLESS = 2**32

cdef object WHOLE = slice(None)


cdef BaseArray index_array(object item):
    """Return an array of integers or bools with axes; None for all else."""
    cdef BaseArray found
    if is_array(item):
        found = item
    elif isinstance(item, cnp.ndarray):
        found = from_numpy(item)
        if found is None:
            return None
    else:
        return None
    if found.block.device or found.ndim == 0 or kind_of[found.dtype] > KIND_UINT \
            or found.size >= ENDLESS:
        return None
    return found


cdef inline bint is_plain(object bound) noexcept:
    return bound is None or PyLong_CheckExact(bound)


cdef bint is_plain_slice(object item) noexcept:
    """Whether an item is a slice of ints and None."""
    cdef PySliceObject *bounds = <PySliceObject *>item
    return PySlice_Check(item) and is_plain(<object>bounds.start) \
        and is_plain(<object>bounds.stop) and is_plain(<object>bounds.step)


cdef tuple basic_items(tuple key, list indices, int *axis):
    """Split a key: return it with a full slice for each array, or None.

    Append the arrays to `indices`. Set the first of their axes in the view that the
    returned key selects; if it is negative, counted from the last one. They and the
    ints must be neighbours: otherwise NumPy puts their axes first.
    """
    cdef BaseArray found
    cdef list basic = []
    cdef int leading = 0, since = 0
    cdef bint begun = False, ended = False, ellipsis = False, from_end = False
    for item in key:
        if PyLong_CheckExact(item):
            begun = True
            if ended:
                return None
        elif item is None or item is Ellipsis or is_plain_slice(item):
            ended = begun
            if item is Ellipsis:
                if ellipsis:
                    return None
                ellipsis = True
                from_end = not indices
            elif indices:
                since += 1
            else:
                leading += 1
        else:
            found = index_array(item)
            if found is None or ended or len(indices) == MOST_INDICES or (
                    found.dtype == BOOL and found.ndim != 1):
                return None
            begun = True
            since += 1
            indices.append(found)
            item = WHOLE
        basic.append(item)
    if not indices:
        return None
    axis[0] = -since if from_end else leading
    return tuple(basic)


cdef bint set_indices(BaseArray x, list indices, int axis,
                      PyObject **arrays) except -1:
    """Set pointers to the indices, with those of true elements in place of masks.

    Return whether each mask is as long as its axis. The list owns the arrays.
    """
    cdef BaseArray found
    cdef int i
    for i in range(len(indices)):
        found = indices[i]
        if found.dtype == BOOL:
            if axis + i >= x.ndim or found.shape[0] != x.shape[axis + i]:
                return False
            found = places_of(found)[0]
            indices[i] = found
        arrays[i] = <PyObject *>found
    return True


cdef BaseArray select(BaseArray x, list indices, int axis):
    """Return the elements that arrays select along axes from `axis` on, or None."""
    cdef PyObject *arrays[MOST_INDICES]
    if not set_indices(x, indices, axis, arrays):
        return None
    return gather(x, axis, <int>len(indices), arrays)


cdef bint write_selected(BaseArray x, list indices, int axis, BaseArray source,
                         char *value) except -1:
    """Write an array, or an element at `value` if that is None; False: refused."""
    cdef PyObject *arrays[MOST_INDICES]
    if not set_indices(x, indices, axis, arrays):
        return False
    return scatter(x, axis, <int>len(indices), arrays, source, value)


cdef BaseArray select_first(BaseArray x, BaseArray index):
    """Return ``x[index]`` for a mask, or an array of indices for the first axis."""
    cdef PyObject *arrays[1]
    if index.dtype == BOOL:
        return compress(x, index)
    if x.ndim == 0:
        return None
    arrays[0] = <PyObject *>index
    return gather(x, 0, 1, arrays)


cdef bint write_first(BaseArray x, BaseArray index, BaseArray source,
                      char *value) except -1:
    """Write ``x[index]``: an array, or an element at `value`; False: refused."""
    cdef PyObject *arrays[1]
    if index.dtype == BOOL:
        return put_masked(x, index, source, value)
    if x.ndim == 0:
        return False
    arrays[0] = <PyObject *>index
    return scatter(x, 0, 1, arrays, source, value)

"""Sorting and searching by NumPy's functions in C, on views of held arrays.

Small results that NumPy allocates itself are copied to our memory, which costs less
than a change of NumPy's allocator.
"""

cimport numpy as cnp
from libc.string cimport memcpy

from ndx._array.pinning cimport (
    Operands, hold, let_go, locate, put, recheck_all, view_of,
)
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.passes.sorting cimport sort_steps
from ndx._lib.dtypes cimport INT64

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef enum NPY_SORTKIND:
        NPY_QUICKSORT
        NPY_STABLESORT
    ctypedef enum NPY_SEARCHSIDE:
        NPY_SEARCHLEFT
        NPY_SEARCHRIGHT
    int PyArray_Sort(cnp.ndarray array, int axis, NPY_SORTKIND kind) except -1
    cnp.ndarray PyArray_ArgSort(cnp.ndarray array, int axis, NPY_SORTKIND kind)
    cnp.ndarray PyArray_SearchSorted(
        cnp.ndarray array, cnp.ndarray values, NPY_SEARCHSIDE side, void *sorter)


cdef int sort_in_place(BaseArray x, int axis, bint stable) except -1:
    """Sort along an axis; the caller has checked that `x` may be changed."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    try:
        if not sort_steps(&operands, axis):
            PyArray_Sort(<cnp.ndarray>view_of(&operands, 0), axis,
                         NPY_STABLESORT if stable else NPY_QUICKSORT)
    finally:
        let_go(&operands)
    return 0


cdef BaseArray indices_of(cnp.ndarray found):
    """Return a copy of NumPy's indices, which lie in C order."""
    cdef Operands operands
    cdef BaseArray result = new_empty(
        INT64, found.ndim, <const Py_ssize_t *>found.shape)
    operands.count = 0
    put(&operands, result)
    locate(&operands)
    memcpy(operands.data[0], cnp.PyArray_DATA(found), cnp.PyArray_NBYTES(found))
    recheck_all(&operands)
    return result


cdef BaseArray sorting_indices(BaseArray x, int axis, bint stable):
    """Return the indices that sort a small array along an axis."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    try:
        found = PyArray_ArgSort(<cnp.ndarray>view_of(&operands, 0), axis,
                                NPY_STABLESORT if stable else NPY_QUICKSORT)
    finally:
        let_go(&operands)
    return indices_of(found)


cdef BaseArray places_in(BaseArray x, BaseArray values, bint right):
    """Return where a few values belong in a sorted vector."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    put(&operands, values)
    hold(&operands)
    try:
        found = PyArray_SearchSorted(
            <cnp.ndarray>view_of(&operands, 0), <cnp.ndarray>view_of(&operands, 1),
            NPY_SEARCHRIGHT if right else NPY_SEARCHLEFT, NULL)
    finally:
        let_go(&operands)
    return indices_of(found)

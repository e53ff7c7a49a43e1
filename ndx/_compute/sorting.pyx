"""Sorting and searching by NumPy's functions in C, on our memory or views of it.

Small results that NumPy allocates itself are copied to our memory, which costs less
than a change of NumPy's allocator.
"""

cimport numpy as cnp
from libc.string cimport memcpy

from ndx._array.pinning cimport (
    Operands, hold, let_go, locate, put, recheck_all, unlocked, view_of,
)
from ndx._array.storage cimport BaseArray, new_empty, require_live
from ndx._compute.copies cimport LARGE
from ndx._compute.passes.sorting cimport sort_steps
from ndx._compute.sorting_threads cimport sort_few, sort_on_threads
from ndx._lib.dtypes cimport FLOAT32, FLOAT64, INT64, KIND_FLOAT, kind_of

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
        cnp.ndarray array, object values, NPY_SEARCHSIDE side, void *sorter)


cdef extern from "ndx/internal/packed_argsort.h" nogil:
    bint ndx_differ(const char *x, Py_ssize_t n, bint wide)

# Arguments of a search for equal elements that differ in their bits.
cdef struct Search:
    char *data
    Py_ssize_t count
    int dtype
    bint found


cdef void run_search(void *arg) noexcept nogil:
    cdef Search *search = <Search *>arg
    search.found = ndx_differ(search.data, search.count, search.dtype == FLOAT64)


cdef bint order_shows(const Operands *held, BaseArray x) except -1:
    """Whether a stable sort may give other bits than NumPy's faster, unstable sort.

    It may if equal elements differ in their bits, as zeros of both signs and NaN do.
    `x` is operand 0, which is held.
    """
    cdef Search search
    if kind_of[x.dtype] < KIND_FLOAT:
        return False
    if not x.c_contiguous or x.dtype != FLOAT64 and x.dtype != FLOAT32:
        return True
    search.data = held.data[0]
    search.count = x.size
    search.dtype = x.dtype
    search.found = False
    if x.size < LARGE:
        run_search(&search)
    else:
        unlocked(held, run_search, &search)
    return search.found


cdef int sort_in_place(BaseArray x, int axis, bint stable) except -1:
    """Sort along an axis; the caller has checked that `x` may be changed."""
    cdef Operands operands
    if x.shape[axis] < 2:
        require_live(x)
        return 0
    operands.count = 0
    put(&operands, x)
    if 0 < x.size < LARGE:
        locate(&operands)
        if sort_few(&operands, axis, stable and order_shows(&operands, x)):
            return 0
    hold(&operands)
    try:
        if not sort_steps(&operands, axis):
            stable = stable and order_shows(&operands, x)
            if not sort_on_threads(&operands, axis, stable):
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
            <cnp.ndarray>view_of(&operands, 0), view_of(&operands, 1),
            NPY_SEARCHRIGHT if right else NPY_SEARCHLEFT, NULL)
    finally:
        let_go(&operands)
    return indices_of(found)

from ndx._array.storage cimport BaseArray
from ndx._lib.dtypes cimport NDTYPES

cdef enum:
    # Limit of axes in NumPy's iterators, which its sorting uses.
    MAX_ITERATED = 32

cdef int sort_in_place(BaseArray x, int axis, bint stable) except -1
cdef BaseArray sorting_indices(BaseArray x, int axis, bint stable)
cdef BaseArray sorting_by_keys(list keys)
cdef object partition(BaseArray x, Py_ssize_t place, bint indices)
cdef BaseArray places_in(BaseArray x, BaseArray values, bint right)

cdef BaseArray ranked(BaseArray x, int axis)

cdef BaseArray search(BaseArray x, BaseArray values, bint right)

# NumPy's functions in C for arrays of one dtype. They need neither the GIL nor an
# array: where NumPy asks for an array, `sample` is given.
ctypedef int (*SortFunction)(void *start, Py_ssize_t count, void *sample) noexcept nogil
ctypedef int (*SearchFunction)(void *start, Py_ssize_t count, Py_ssize_t *place,
                               void *sample) noexcept nogil

# NumPy's functions of one dtype, for elements side by side; NULL: there is none.
cdef struct ArrayFunctions:
    SortFunction sort                # in place
    SortFunction stable_sort
    SearchFunction argmax            # the first of equal ones; the first NaN
    SearchFunction argmin
    void *sample

cdef ArrayFunctions[NDTYPES] array_functions

from ndx._lib.dtypes cimport NDTYPES

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

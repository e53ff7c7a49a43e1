from ndx._array.storage cimport BaseArray

cdef Py_ssize_t run_of(BaseArray x, int axis) noexcept
cdef int count_into(BaseArray result, BaseArray x) except -1
cdef Py_ssize_t count_true(BaseArray x) except -1
cdef BaseArray compress(BaseArray x, BaseArray mask)
cdef bint put_masked(BaseArray x, BaseArray mask, BaseArray source,
                     char *value) except -1
cdef tuple places_of(BaseArray x)

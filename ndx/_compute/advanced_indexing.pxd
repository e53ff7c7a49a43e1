from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray

cdef int count_into(BaseArray result, BaseArray x) except -1
cdef Py_ssize_t count_true(BaseArray x) except -1
cdef BaseArray compress(BaseArray x, BaseArray mask)
cdef bint put_masked(BaseArray x, BaseArray mask, BaseArray source,
                     char *value) except -1
cdef tuple places_of(BaseArray x)

cdef enum:
    # With the array and the result, as many as a computation may have.
    MOST_INDICES = 4

# The indices are borrowed references to arrays of integers.
cdef BaseArray gather(BaseArray x, int axis, int count, PyObject **indices)
cdef bint scatter(BaseArray x, int axis, int count, PyObject **indices,
                  BaseArray source, char *value) except -1

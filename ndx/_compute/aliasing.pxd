from ndx._array.storage cimport BaseArray

cdef bint is_distinct(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                      Py_ssize_t nbytes) noexcept nogil
cdef bint has_distinct_elements(BaseArray x) noexcept
cdef bint touches(BaseArray x, BaseArray y) noexcept
cdef bint overlaps(BaseArray out, BaseArray x) noexcept

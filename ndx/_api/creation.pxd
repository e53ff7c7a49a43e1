from ndx._array.storage cimport BaseArray

cdef int check_fill(int dtype, object value) except -1
cdef int fill_checked(BaseArray x, object value) except -1
cdef int scalar_default(object value) noexcept

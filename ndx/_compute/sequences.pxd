from ndx._array.storage cimport BaseArray

cdef bint is_plain(object obj) noexcept
cdef BaseArray from_sequence(object obj, int dtype)
cdef BaseArray array_of(object sequence, int dtype)

from ndx._array.storage cimport BaseArray

cdef bint is_off_host(object x) noexcept
cdef object compute_elsewhere(str name, tuple args, dict kwargs)

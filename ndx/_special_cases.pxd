cdef void *own_loop(str name, int dtype) noexcept

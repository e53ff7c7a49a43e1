cdef object device_engine()
cdef bint is_on_device(object x) noexcept
cdef bint any_on_device(tuple values)

cdef bint is_interruption(object error) noexcept
cdef bint raise_later(object error) noexcept
cdef object graver(object error, object other)
cdef void report_ignored(object where, object error) noexcept

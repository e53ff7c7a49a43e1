cdef void report_ignored(object where, object error) noexcept

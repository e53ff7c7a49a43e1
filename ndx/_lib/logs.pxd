cdef void log_event(str message, tuple arguments) noexcept
cdef void log_warning(str message, tuple arguments) noexcept

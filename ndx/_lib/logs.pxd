cdef void log_event(str message, tuple arguments) noexcept

cdef bint is_interruption(object error) noexcept
cdef bint raise_later(object error) noexcept
cdef bint queue(object error) noexcept
cdef object graver(object error, object other)
cdef void report_ignored(object where, object error) noexcept

cdef class Refusals:
    cdef dict of_threads         # ident of a thread -> its last refusal

    cdef void keep(self, object error) noexcept
    cdef object take(self)
    cdef void drop(self) noexcept

cdef bint is_of_allocator(object error) noexcept

cdef void log_event(str message, tuple arguments) noexcept
cdef void log_warning(str message, tuple arguments) noexcept

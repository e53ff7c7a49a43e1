cdef class Refusals:
    cdef dict of_threads         # ident of a thread -> its last refusal

    cdef void keep(self, object error) noexcept
    cdef object take(self)
    cdef void drop(self) noexcept

cdef bint is_of_allocator(object error) noexcept

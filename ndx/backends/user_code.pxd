cdef class UserCode:
    cdef set threads             # idents of the threads inside

    cdef bint is_inside(self) except -1
    cdef object enter(self, str message)
    cdef void leave(self, object entered) noexcept

cdef int hold_buffer(str owner, object source, size_t nbytes,
                     Py_buffer *view) except -1

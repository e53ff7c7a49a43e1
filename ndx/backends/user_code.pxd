from cpython.object cimport PyObject

cdef class UserCode:
    cdef set threads             # idents of the threads inside
    cdef dict refusals           # ident of a thread -> its last MemoryError
    cdef Py_ssize_t forks        # when this process was last found to be the same

    cdef bint is_inside(self) except -1
    cdef int forget_parents(self) except -1
    cdef object enter(self, str message)
    cdef void leave(self, object entered) noexcept
    cdef void keep_refusal(self, object error) noexcept
    cdef object take_refusal(self)

cdef object begin_buffer(UserCode inside, object owner, str name, str message,
                         size_t nbytes, Py_buffer *view)
cdef void end_buffer(UserCode inside, object owner, Py_buffer *view,
                     PyObject *source) noexcept

from cpython.object cimport PyObject

from ndx._lib.unraisable cimport Refusals

cdef class UserCode:
    cdef set threads             # idents of the threads inside
    cdef Refusals refusals       # MemoryErrors of `acquire`, which were caught
    cdef Py_ssize_t forks        # when this process was last found to be the same

    cdef bint is_inside(self) except -1
    cdef int forget_parents(self) except -1
    cdef object enter(self, str message)
    cdef void leave(self, object entered) noexcept

cdef object begin_buffer(UserCode inside, object owner, str name, str message,
                         size_t nbytes, Py_buffer *view)
cdef void end_buffer(UserCode inside, object owner, Py_buffer *view,
                     PyObject *source) noexcept

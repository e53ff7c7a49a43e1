cdef object silence()
cdef int restore(object token) except -1

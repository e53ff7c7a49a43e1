# How passes are made here: five options, which don't change. -1: not said.
cdef class Settings:
    cdef object progress             # callable, or None
    cdef Py_ssize_t block
    cdef Py_ssize_t threads
    cdef Py_ssize_t threshold
    cdef Py_ssize_t memory
    cdef Settings outer              # what held before
    cdef object home                 # the contextvars.Context they were entered in
    cdef bint left                   # they hold no more, also where they are current

cdef Settings settings()
cdef object suspend()
cdef int resume(object token) except -1
cdef Py_ssize_t memory_for_pages(Settings settings) except -1

# The five options of passes, immutable. -1: not given.
cdef class Settings:
    cdef object progress             # callable, or None
    cdef Py_ssize_t block
    cdef Py_ssize_t threads      # 0: as many as compute other operations, at most 8
    cdef Py_ssize_t threshold
    cdef Py_ssize_t memory
    cdef Settings outer              # the settings before
    cdef object home                 # the contextvars.Context they were entered in
    cdef const void *place           # the same, which other threads compare; or NULL
    cdef bint left                   # no longer in force, even if they are current

cdef Settings settings()
cdef object suspend()
cdef int resume(object token) except -1
cdef Py_ssize_t memory_for_pages(Settings settings) except -1

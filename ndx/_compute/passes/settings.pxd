from ndx._lib.interpreter cimport Owned

# The five options of passes, immutable, of who entered them.
# -1: not given.
cdef class Settings(Owned):
    cdef object progress             # callable, or None
    cdef Py_ssize_t block
    cdef Py_ssize_t threads      # 0: as many as compute other operations, at most 8
    cdef Py_ssize_t threshold
    cdef Py_ssize_t memory
    cdef Settings outer              # the settings before
    cdef bint left                   # no longer in force, even if they are current

cdef Settings settings()
cdef object suspend()
cdef int resume(object token) except -1
cdef Py_ssize_t memory_for_pages(Settings settings) except -1

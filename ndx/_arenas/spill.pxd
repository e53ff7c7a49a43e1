from ndx.backends.base cimport Backend, Memory

# Who serves what does not fit an arena.
cdef class Spill:
    cdef Backend own                     # the arena's: while its size is not yet known
    cdef Backend backend                 # serves what does not fit
    cdef Backend beyond                  # and what that can't; None: nobody
    cdef bint fails                      # nobody serves it

    cdef int check(self, str name, size_t nbytes, size_t taken, size_t size) except -1
    cdef Backend serve(self, size_t nbytes, bint zero, size_t size, Memory *out)

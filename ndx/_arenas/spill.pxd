from libc.stdint cimport uint64_t

from ndx._lib.sizing cimport Sizing
from ndx.backends.base cimport Backend, Memory

# The spill policy of an arena: the backends that serve what does not fit.
cdef class Spill:
    cdef Backend own                     # the arena's: while its size is not yet known
    cdef Backend backend                 # serves what does not fit
    cdef Backend beyond                  # fallback of `backend`; None: no fallback
    cdef bint fails                      # spills are refused

    cdef int check(self, str name, size_t nbytes, size_t taken, size_t size) except -1
    cdef Backend serve(self, size_t nbytes, bint zero, size_t size, Memory *out)

cdef void note_first_spill(str name, uint64_t cycle, Sizing sizing, size_t size,
                           size_t most) noexcept

from libc.stdint cimport uint64_t

from ndx._arenas.sizing cimport Sizing

cdef void note_first_spill(str name, uint64_t cycle, Sizing sizing, size_t size,
                           size_t most) noexcept

from libc.stdint cimport uintptr_t

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block

# A copy in progress to or from a device: [low, high) of the chunk, until an event.
cdef struct Flight:
    size_t low
    size_t high
    void *event

cdef class TwinArena(Arena):
    cdef size_t at                       # offset of the next block
    cdef Flight *flights
    cdef Py_ssize_t nflights
    cdef Py_ssize_t capacity

    cdef Block *serve(self, size_t low, size_t high) except? NULL
    cdef char *stage(self, size_t low, size_t high) except? NULL
    cdef int fly(self, size_t low, size_t high, size_t stream) except -1
    cdef bint is_taken(self, size_t low, size_t high) noexcept
    cdef int land(self, size_t low, size_t high) except -1

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block

# A copy in progress to or from a device: [low, high) of the chunk, until an event.
cdef struct Transfer:
    size_t low
    size_t high
    void *event

cdef class MirrorArena(Arena):
    cdef size_t at                       # offset of the next block
    cdef Transfer *transfers
    cdef Py_ssize_t ntransfers
    cdef Py_ssize_t capacity

    cdef Block *serve(self, size_t low, size_t high) except? NULL
    cdef char *stage(self, size_t low, size_t high) except? NULL
    cdef int note_copy(self, size_t low, size_t high, size_t stream) except -1
    cdef bint is_taken(self, size_t low, size_t high) noexcept
    cdef int wait_for_copies(self, size_t low, size_t high) except -1

from ndx._arenas.bump cimport BumpArena

cdef class FileArena(BumpArena):
    cdef bint is_read(self) noexcept

from ndx._arenas.arena cimport Arena

cdef void note_first_spill(Arena arena) noexcept

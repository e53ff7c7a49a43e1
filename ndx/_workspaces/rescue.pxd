from ndx._arenas.arena cimport Arena

cdef object rescue(Arena arena, object result)

from ndx._arenas.base cimport Arena

cdef object rescue(Arena arena, object result)

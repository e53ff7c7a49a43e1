from ndx._arenas.arena cimport Arena

cdef object detach_results(Arena arena, object result)

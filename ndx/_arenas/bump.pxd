from ndx._arenas.arena cimport Arena
from ndx._arenas.in_use cimport Range

cdef class BumpArena(Arena):
    cdef Range *gaps                     # of this cycle, lowest first; `low` advances
    cdef Py_ssize_t ngaps
    cdef Py_ssize_t capacity
    cdef Py_ssize_t first_gap            # none before it has room

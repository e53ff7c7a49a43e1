from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block
from ndx.backends.base cimport Backend

cdef Backend placing_backend()
cdef int placing_device() except -1
cdef int device_of_new(object device) except -1
cdef Arena current_arena(int device)
cdef Arena enclosing_arena(int device)
cdef Arena open_arena(object wanted)
cdef Block *allocate_on(int device, size_t nbytes, bint zero, bint detached,
                        Arena arena, size_t room) except NULL

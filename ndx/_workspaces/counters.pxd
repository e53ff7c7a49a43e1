from ndx._workspaces.slots cimport Slots

cdef dict counters_of(Slots slots, bint is_open)

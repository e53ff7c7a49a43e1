cdef int collect_for_memory() except -1
cdef int scope_ended() except -1

cdef int switch_all_numpy(bint ours) except -1

cdef int set_handlers(object results, object plain) except -1
cdef object switch_numpy(bint ours)
cdef object suspend_handlers()
cdef void restore_numpy(object handler) noexcept
cdef int switch_all_numpy(bint ours) except -1

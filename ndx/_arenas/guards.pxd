cdef enum:
    GUARD = 64               # bytes behind each block in debug mode

cdef void set_guard(char *end) noexcept nogil
cdef Py_ssize_t check_guard(char *end) noexcept nogil
cdef void fill_dead(char *ptr, size_t nbytes) noexcept nogil
cdef object damage_error(str name, list damage)
cdef int check_for_device(str name, str backend, object config,
                          object home) except -1

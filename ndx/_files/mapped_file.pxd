# A mapped file. It is unmapped and closed with the last reference to this object.
cdef class MappedFile:
    cdef readonly str path
    cdef readonly str mode           # as given to `ndx.open`
    cdef readonly int fd             # -1: closed
    cdef readonly size_t nbytes      # mapped from the file's start; 0: not mapped
    cdef char *start

    cdef int map(self, size_t nbytes, bint writable, bint shared,
                 bint own_copy_in_child=*) except -1
    cdef void unmap(self) noexcept nogil
    cdef void close(self) noexcept nogil
    cdef int flush(self) except -1
    cdef int check_whole(self) except -1
    cdef int go_on_with(self, int fd) except -1

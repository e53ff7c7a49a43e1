from ndx._files.mapping cimport MappedFile
from ndx.backends.base cimport Backend, Memory

cdef class FileBackend(Backend):
    cdef readonly str path
    cdef readonly size_t size            # reserved bytes of the file
    cdef readonly MappedFile file
    cdef long process                    # id of the process that has locked the file
    cdef bint lent
    cdef bint leaving                    # close the file when the memory is released

    cdef int open(self, size_t size, object most) except -1
    cdef int lend(self, size_t nbytes, bint zero, Memory *out) except -1
    cdef int check_process(self) except -1
    cdef int flush(self) except -1
    cdef int leave(self) except -1
    cdef void go(self) noexcept nogil
    cdef void let_go(self) noexcept nogil

from ndx._files.mapped_file cimport MappedFile
from ndx.backends.base cimport Backend, Memory

cdef class FileBackend(Backend):
    cdef readonly str path
    cdef readonly size_t size            # bytes of the file that are set aside
    cdef readonly MappedFile file
    cdef object process                  # whose lock the file's is
    cdef bint lent
    cdef bint leaving                    # when the memory comes back

    cdef int open(self, size_t size, object most) except -1
    cdef int lend(self, size_t nbytes, bint zero, Memory *out) except -1
    cdef int check_process(self) except -1
    cdef int leave(self) except -1

from ndx._array.pinning cimport Compute, Operands
from ndx._lib.layout cimport Walk

# Computes one part of an operation: it runs no Python and takes no lock.
ctypedef void (*Part)(void *arg, Py_ssize_t index) noexcept nogil

cdef int thread_count() noexcept nogil
cdef void parallel_for(Py_ssize_t count, Part part, void *arg) noexcept nogil

cdef int compute_parts(Operands *operands, const Walk *walk,
                       const Py_ssize_t *itemsizes, Compute function, void *arg,
                       str name) except -1

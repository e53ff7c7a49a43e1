# Computes one part of an operation: it runs no Python and takes no lock.
ctypedef void (*Part)(void *arg, Py_ssize_t index) noexcept nogil

cdef int thread_count() noexcept nogil
cdef void parallel_for(Py_ssize_t count, bint in_order, Part part,
                       void *arg) noexcept nogil

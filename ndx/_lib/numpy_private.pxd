from ndx._lib.free_threading cimport ndx_load_int

ctypedef void (*LoopFunction)(char **args, const Py_ssize_t *counts,
                              const Py_ssize_t *strides, void *data) noexcept nogil

cdef LoopFunction loop_at(object ufunc, Py_ssize_t index, void **data) noexcept
# Scopes, in all threads, in which floating-point errors are reported.
cdef int reporting

cdef inline bint may_report() noexcept nogil:
    """Whether a thread is in such a scope; `reports` tells whether this one is."""
    return ndx_load_int(&reporting) != 0

cdef object silence()
cdef bint reports() noexcept
cdef int restore(object token) except -1

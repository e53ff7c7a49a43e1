# Adds the sum of contiguous elements to a total, in NumPy's order.
ctypedef void (*SumFunction)(
    char *total, const char *x, Py_ssize_t count) noexcept nogil

cdef SumFunction find_sum(str name, int dtype)

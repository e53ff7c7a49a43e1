from ndx._array.pinning cimport Compute, Operands
from ndx._lib.layout cimport Walk

cdef int compute_parts(Operands *operands, const Walk *walk,
                       const Py_ssize_t *itemsizes, Compute function, void *arg,
                       str name) except -1

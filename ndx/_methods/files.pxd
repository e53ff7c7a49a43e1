from ndx._array.storage cimport BaseArray

cdef int flush(BaseArray x) except -1
cdef int commit(BaseArray x) except -1

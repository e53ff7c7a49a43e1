from ndx._array.storage cimport BaseArray

cdef int flush(BaseArray x) except -1
cdef int commit(BaseArray x) except -1
cdef int write_pickle(BaseArray x, object file) except -1
cdef int write_elements(BaseArray x, object file, object sep, object format) except -1

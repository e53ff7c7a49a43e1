from ndx._array.storage cimport BaseArray

cdef object refused_value(str what, int dtype)
cdef object converted(object scalar, int dtype)
cdef object array_for(BaseArray x, object value)
cdef int copy_broadcast(BaseArray target, BaseArray source) except -1

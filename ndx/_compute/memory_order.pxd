from ndx._array.storage cimport BaseArray

cdef int check_order(object order) except -1
cdef bint lies_in(BaseArray x, object order)
cdef BaseArray cast_ordered(BaseArray x, int dtype, object order)

from ndx._array cimport BaseArray

cdef BaseArray basic_view(BaseArray x, object key)
cdef object get_item(BaseArray x, object key)
cdef int set_item(BaseArray x, object key, object value) except -1

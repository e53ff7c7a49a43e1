from ndx._array.storage cimport BaseArray

cdef BaseArray basic_view(BaseArray x, object key)
cdef object items_of(BaseArray x)
cdef BaseArray flat_element(BaseArray x, object key)
cdef object get_item(BaseArray x, object key)
cdef int set_flat(BaseArray x, object key, object value) except -1
cdef int set_item(BaseArray x, object key, object value) except -1

from ndx._array.storage cimport BaseArray

cdef BaseArray basic_view(BaseArray x, object key)
cdef BaseArray item_at(BaseArray x, Py_ssize_t index)
cdef object get_item(BaseArray x, object key)
cdef int set_item(BaseArray x, object key, object value) except -1

from ndx._array.storage cimport BaseArray

# A mask with this many elements can only be a broadcast view.
cdef Py_ssize_t ENDLESS

cdef BaseArray index_array(object item)
cdef tuple basic_items(tuple key, list indices, int *axis)
cdef BaseArray select(BaseArray x, list indices, int axis)
cdef bint write_selected(BaseArray x, list indices, int axis, BaseArray source,
                         char *value) except -1
cdef BaseArray select_first(BaseArray x, BaseArray index)
cdef bint write_first(BaseArray x, BaseArray index, BaseArray source,
                      char *value) except -1

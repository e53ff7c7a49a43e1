from ndx._array.storage cimport BaseArray

cdef int fill_buffer(BaseArray x, object exporter, Py_buffer *buffer,
                     int flags) except -1
cdef void release_buffer(Py_buffer *buffer) noexcept

cdef object to_dlpack(BaseArray x, bint versioned, bint copied, bint any_strides)
cpdef BaseArray imported(object x)
cdef BaseArray from_dlpack_capsule(object capsule)
cdef tuple dlpack_device(BaseArray x)
cdef object unknown_device(object kind, object number)

from ndx._array.storage cimport BaseArray

cdef int fill_buffer(BaseArray x, object exporter, Py_buffer *buffer,
                     int flags) except -1
cdef void release_buffer(Py_buffer *buffer) noexcept

from ndx._array.storage cimport BaseArray

cdef BaseArray part(BaseArray x, Py_ssize_t offset)

from ndx._array.storage cimport BaseArray

cdef BaseArray repeated(BaseArray x, Py_ssize_t count, int axis)
cdef BaseArray repeated_each(BaseArray x, BaseArray counts, int axis)

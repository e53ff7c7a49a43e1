from ndx._array cimport BaseArray
from ndx._loops cimport Ufunc

cdef Py_ssize_t repeats(BaseArray x, object axis) except -1
cdef BaseArray distinct(BaseArray x, object axis)
cdef BaseArray combined(Ufunc ufunc, BaseArray x, Py_ssize_t count)

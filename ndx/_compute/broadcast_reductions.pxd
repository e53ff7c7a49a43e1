from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef Py_ssize_t repeats(BaseArray x, object axis) except -1
cdef Py_ssize_t combinable(Ufunc ufunc, int dtype, BaseArray x, object axis) except -1
cdef BaseArray distinct(BaseArray x, object axis)
cdef BaseArray combined(Ufunc ufunc, BaseArray x, Py_ssize_t count)

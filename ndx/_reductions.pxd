from ndx._array cimport BaseArray
from ndx._loops cimport Ufunc

cdef BaseArray reduce(Ufunc ufunc, BaseArray x, object axis, bint keepdims)
cdef object identity(Ufunc ufunc, int dtype)

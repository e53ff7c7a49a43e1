from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef BaseArray reduce(Ufunc ufunc, BaseArray x, object axis, bint keepdims)
cdef object identity(Ufunc ufunc, int dtype)
cdef BaseArray new_reduced(BaseArray x, int dtype, const bint *chosen, bint keepdims)

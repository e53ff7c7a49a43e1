from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop, Ufunc

cdef BaseArray reduce(Ufunc ufunc, BaseArray x, object axis, bint keepdims)
cdef int reduce_into(BaseArray result, Ufunc ufunc, const Loop *loop, BaseArray x,
                     bint *chosen, bint keepdims) except -1
cdef object identity(Ufunc ufunc, int dtype)
cdef BaseArray new_reduced(BaseArray x, int dtype, const bint *chosen, bint keepdims)

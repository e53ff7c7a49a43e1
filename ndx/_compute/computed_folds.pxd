from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef BaseArray reduce_as(Ufunc ufunc, BaseArray x, int dtype, object axis,
                         bint keepdims)
cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims)

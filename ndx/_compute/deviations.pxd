from ndx._array.storage cimport BaseArray

cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims)

from ndx._array.storage cimport BaseArray

cdef BaseArray euclidean(BaseArray x, object axis, bint keepdims)

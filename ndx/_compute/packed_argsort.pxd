from ndx._array.storage cimport BaseArray

cdef BaseArray ranked(BaseArray x, int axis)

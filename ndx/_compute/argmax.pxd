from ndx._array.storage cimport BaseArray

cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1
cdef bint find_large(str name, BaseArray x, BaseArray found, int axis) except -1

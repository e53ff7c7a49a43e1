from ndx._array.storage cimport BaseArray

cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1

from ndx._array cimport BaseArray

cdef bint sort_steps(BaseArray x, int axis) except -1

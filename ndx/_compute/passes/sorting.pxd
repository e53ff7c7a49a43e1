from ndx._array.pinning cimport Operands

cdef bint sort_steps(const Operands *held, int axis) except -1

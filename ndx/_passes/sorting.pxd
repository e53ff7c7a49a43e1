from ndx._gil cimport Operands

cdef bint sort_steps(const Operands *held, int axis) except -1

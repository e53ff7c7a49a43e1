from ndx._array.pinning cimport Operands

cdef bint sort_few(Operands *located, int axis, bint stable) except -1
cdef bint sort_on_threads(Operands *held, int axis, bint stable) except -1

from ndx._array.pinning cimport Operands
from ndx._lib.layout cimport Walk

cdef bint copy_walk(const Operands *held, const Walk *walk, int dtype, int into,
                    str name) except -1

from ndx._array.pinning cimport Operands
from ndx._lib.layout cimport Walk

cdef bint cast_walk(const Operands *held, const Walk *walk, int dtype,
                    int into) except -1

from ndx._gil cimport Operands
from ndx._layout cimport Walk

cdef bint copy_walk(const Operands *held, const Walk *walk, int dtype, int into,
                    str name) except -1

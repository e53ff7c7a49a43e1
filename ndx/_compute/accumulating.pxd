from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef bint accumulate_lines(str name, Ufunc ufunc, BaseArray x, BaseArray out,
                           int axis) except -1

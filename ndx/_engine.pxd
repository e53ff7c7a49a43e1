from ndx._array cimport BaseArray

cpdef BaseArray argument(object x, str name)
cdef BaseArray layout_argument(object x, str name)

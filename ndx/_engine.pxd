from ndx._array cimport BaseArray

cpdef BaseArray argument(object x, str name)
cpdef BaseArray layout_argument(object x, str name)

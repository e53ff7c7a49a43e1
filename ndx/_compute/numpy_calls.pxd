from ndx._array.storage cimport BaseArray

cpdef BaseArray argument(object x, str name)
cpdef BaseArray layout_argument(object x, str name)

from ndx._array.storage cimport BaseArray

cpdef BaseArray host_argument(object x, str name)
cpdef BaseArray argument(object x, str name)

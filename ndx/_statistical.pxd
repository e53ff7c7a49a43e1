from ndx._array cimport BaseArray

cdef BaseArray truth(object x, str name)

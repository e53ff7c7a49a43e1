from ndx._array.storage cimport BaseArray

cdef BaseArray truth(object x, str name)

from ndx._array.storage cimport BaseArray

cdef tuple pickled(BaseArray x, int protocol)

from ndx._array.storage cimport BaseArray

cdef class NDArray(BaseArray):
    pass

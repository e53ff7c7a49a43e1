from ndx._array cimport BaseArray

cdef class NDArray(BaseArray):
    pass

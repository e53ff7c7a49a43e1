from ndx._array.storage cimport BaseArray

# The attributes of NumPy's arrays; see `ndx._core.NDArray`.
cdef class NumPyAttributes(BaseArray):
    pass

cdef int set_writeable(BaseArray x, bint writeable) except -1

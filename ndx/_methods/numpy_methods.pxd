from ndx._methods.numpy_attributes cimport NumPyAttributes

# The methods of NumPy's arrays; see `ndx._core.NDArray`.
cdef class NumPyMethods(NumPyAttributes):
    pass

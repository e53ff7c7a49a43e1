from ndx._methods.numpy_methods cimport NumPyMethods

cdef class NDArray(NumPyMethods):
    pass

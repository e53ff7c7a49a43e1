from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

# Computes the values of a part that are reduced.
cdef class Converter:
    cdef BaseArray convert(self, BaseArray part, tuple box)

# Computes the values in another dtype.
cdef class InDtype(Converter):
    cdef int dtype

# Computes whether the values are not zero, in a dtype.
cdef class NotZero(Converter):
    cdef int dtype

# Computes the squares of the values' distances from a mean.
cdef class Squares(Converter):
    cdef int dtype
    cdef BaseArray mean

cdef InDtype in_dtype(int dtype)
cdef NotZero not_zero(int dtype)
cdef Squares squares(int dtype, BaseArray mean)
cdef BaseArray fold(str name, Ufunc ufunc, BaseArray x, object axis, bint keepdims,
                    int dtype, Converter converter)
cdef bint accumulate_steps(str name, Ufunc ufunc, BaseArray x, BaseArray out,
                           int axis) except -1

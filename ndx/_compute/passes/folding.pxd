from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

# What is computed of a part before it is reduced.
cdef class Converter:
    cdef BaseArray convert(self, BaseArray part, tuple box)

# The values in another dtype.
cdef class InDtype(Converter):
    cdef int dtype

# Whether they are not zero, in a dtype.
cdef class NotZero(Converter):
    cdef int dtype

# The squares of their distances from a mean.
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

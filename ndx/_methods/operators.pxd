from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef object operate_with(Ufunc ufunc, object x1, object x2)
cdef object operate_in_place_with(Ufunc ufunc, BaseArray x, object other)
cdef object divide_with(Ufunc ufunc, object x1, object x2)
cdef bint are_scalars(object x1, object x2) except -1
cdef object compute_scalars(object function, object x1, object x2)

from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop, Ufunc

cdef Py_ssize_t repeats(BaseArray x, object axis) except -1
cdef BaseArray distinct(BaseArray x, object axis)
cdef BaseArray combined(Ufunc ufunc, BaseArray x, Py_ssize_t count)

cdef BaseArray reduce(Ufunc ufunc, BaseArray x, object axis, bint keepdims)

cdef BaseArray reduce_as(str name, Ufunc ufunc, BaseArray x, int dtype, object axis,
                         bint keepdims)
cdef BaseArray reduce_truth(str name, Ufunc ufunc, BaseArray x, int dtype,
                            object axis, bint keepdims)
cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims)

cdef int accumulator(int dtype) noexcept
cdef BaseArray reduce_where(str name, BaseArray x, object axis, bint keepdims,
                            object initial, BaseArray where)

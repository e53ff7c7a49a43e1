from ndx._array.storage cimport BaseArray

cdef object matmul(object x1, object x2, BaseArray out)
cdef object vecdot(object x1, object x2, object axis)

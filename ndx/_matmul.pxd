from ndx._array cimport BaseArray

cdef object matmul(object x1, object x2, BaseArray out)

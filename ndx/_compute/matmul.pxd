from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef object matmul(object x1, object x2, BaseArray out)
cdef object vecdot(object x1, object x2, object axis)
cdef BaseArray axis_last(BaseArray x, int axis)

cdef BaseArray dot(BaseArray x, BaseArray y)
cdef BaseArray correlated(BaseArray x, BaseArray y, int mode)
cdef BaseArray flat_norm(BaseArray x)
cdef BaseArray flattened(BaseArray x)
cdef BaseArray outer(Ufunc ufunc, BaseArray x, BaseArray y)

cdef BaseArray euclidean(BaseArray x, object axis, bint keepdims)

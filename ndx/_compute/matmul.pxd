from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop

cdef object matmul(object x1, object x2, BaseArray out)
cdef object vecdot(object x1, object x2, object axis)
cdef BaseArray vecdot_walk(BaseArray a, BaseArray b, const Loop *loop)
cdef BaseArray axis_last(BaseArray x, int axis)

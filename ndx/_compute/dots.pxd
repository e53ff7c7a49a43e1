from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

cdef BaseArray dot(BaseArray x, BaseArray y)
cdef BaseArray flat_norm(BaseArray x)
cdef BaseArray flattened(BaseArray x)
cdef BaseArray outer(Ufunc ufunc, BaseArray x, BaseArray y)

from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._lib.layout cimport Walk

cdef bint walk_copy(BaseArray out, BaseArray x, Walk *walk) noexcept
cdef bint can_transfer(int dtype, int into) except -1
cdef int transfer(Operands *operands, Walk *walk, int dtype, int into,
                  str name) except -1
cdef int fill_all(Operands *operands, BaseArray out) except -1

from ndx._array.storage cimport BaseArray
from ndx._compute.transfers cimport LARGE

cdef bint can_store(int dtype, int into) noexcept
cdef BaseArray cast(BaseArray x, int dtype)
cdef BaseArray copy(BaseArray x)
cdef int copy_elements(BaseArray out, BaseArray x, bint is_new) except -1
cdef int copy_into(BaseArray out, BaseArray x) except -1
cdef BaseArray in_c_order(BaseArray x, int dtype)
cdef int fill(BaseArray out, object scalar) except -1
cdef int require_castable(int dtype, int into) except -1

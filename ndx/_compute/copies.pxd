from ndx._array.storage cimport BaseArray
from ndx._compute.numpy_private cimport reporting
from ndx._compute.transfers cimport LARGE
from ndx._lib.dtypes cimport store_scalar

cdef bint can_store(int dtype, int into) noexcept
cdef BaseArray cast(BaseArray x, int dtype)
cdef BaseArray copy(BaseArray x)
cdef int copy_elements(BaseArray out, BaseArray x, bint is_new) except -1
cdef int copy_into(BaseArray out, BaseArray x) except -1
cdef BaseArray in_c_order(BaseArray x, int dtype)
# Like `store_scalar`; in `ndx.numpy.errstate`, what overflows is reported.
cdef inline int store_constant(object scalar, int dtype, char *out) except -1:
    store_scalar(scalar, dtype, out)
    if reporting != 0:
        report_overflow(scalar, dtype)
    return 0

cdef int report_overflow(object scalar, int dtype) except -1
cdef int fill_with(BaseArray out, char *value) except -1
cdef int fill(BaseArray out, object scalar) except -1
cdef int require_castable(int dtype, int into) except -1

from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._lib.dtypes cimport store_scalar
from ndx._lib.layout cimport Walk
from ndx._lib.numpy_private cimport may_report

# Converts elements.
ctypedef void (*Cast)(char *out, Py_ssize_t out_step, const char *x, Py_ssize_t x_step,
                      Py_ssize_t n) noexcept nogil

cdef extern from "ndx/internal/transfer.h":
    # How elements are transferred: by a cast or, if that is NULL, as they are.
    ctypedef struct Transfer "ndx_transfer":
        Cast cast
        Py_ssize_t itemsize              # of what is copied

cdef bint can_transfer(int dtype, int into) except -1
cdef int transfer(Operands *operands, Walk *walk, int dtype, int into,
                  str name) except -1
cdef Cast cast_between(int dtype, int into) noexcept nogil
cdef void transfer_block(const Transfer *how, char *out, Py_ssize_t out_row,
                         Py_ssize_t out_step, const char *x, Py_ssize_t x_row,
                         Py_ssize_t x_step, Py_ssize_t rows,
                         Py_ssize_t length) noexcept nogil

cdef bint can_store(int dtype, int into) noexcept
cdef BaseArray cast(BaseArray x, int dtype)
cdef BaseArray copy(BaseArray x)
cdef int copy_into(BaseArray out, BaseArray x) except -1
cdef BaseArray in_c_order(BaseArray x, int dtype)
# Like `store_scalar`; in `ndx.numpy.errstate`, what overflows is reported.
cdef inline int store_constant(object scalar, int dtype, char *out) except -1:
    store_scalar(scalar, dtype, out)
    if may_report():
        report_overflow(scalar, dtype)
    return 0

cdef int report_overflow(object scalar, int dtype) except -1
cdef int fill_with(BaseArray out, char *value) except -1
cdef int fill(BaseArray out, object scalar) except -1
cdef int require_castable(int dtype, int into) except -1

cdef int check_order(object order) except -1
cdef bint lies_in(BaseArray x, object order)
cdef BaseArray cast_ordered(BaseArray x, int dtype, object order)

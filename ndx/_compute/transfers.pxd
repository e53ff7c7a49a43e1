from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._lib.layout cimport Walk

# Converts elements.
ctypedef void (*Cast)(char *out, Py_ssize_t out_step, const char *x, Py_ssize_t x_step,
                      Py_ssize_t n) noexcept nogil

cdef extern from "ndx/internal/transfer.h":
    # How elements are transferred: by a cast or, if that is NULL, as they are.
    ctypedef struct Transfer "ndx_transfer":
        Cast cast
        Py_ssize_t itemsize              # of what is copied

cdef enum:
    # Elements from which the GIL is released. Releasing and acquiring it costs about
    # as much as computing a few hundred elements.
    LARGE = 32768

cdef bint walk_copy(BaseArray out, BaseArray x, Walk *walk) noexcept
cdef bint can_transfer(int dtype, int into) except -1
cdef int transfer(Operands *operands, Walk *walk, int dtype, int into,
                  str name) except -1
cdef int fill_all(Operands *operands, BaseArray out) except -1
cdef Cast cast_between(int dtype, int into) noexcept nogil
cdef void transfer_block(const Transfer *how, char *out, Py_ssize_t out_row,
                         Py_ssize_t out_step, const char *x, Py_ssize_t x_row,
                         Py_ssize_t x_step, Py_ssize_t rows,
                         Py_ssize_t length) noexcept nogil

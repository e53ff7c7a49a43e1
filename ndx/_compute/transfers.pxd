from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._lib.layout cimport Walk

cdef enum:
    # Elements from which the GIL is released. Releasing and acquiring it costs about
    # as much as computing a few hundred elements.
    LARGE = 32768

cdef bint walk_copy(BaseArray out, BaseArray x, Walk *walk) noexcept
cdef bint is_distinct(const Walk *walk, int op, Py_ssize_t nbytes) noexcept
cdef bint can_transfer(int dtype, int into) except -1
cdef int transfer(Operands *operands, Walk *walk, int dtype, int into,
                  str name) except -1
cdef int fill_all(Operands *operands, BaseArray out) except -1

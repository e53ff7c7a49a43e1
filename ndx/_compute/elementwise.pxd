from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop, Ufunc
from ndx._lib.layout cimport Walk

cdef enum:
    # Elements from which the GIL is released; its release and return cost about as
    # much as a few hundred elements.
    LARGE = 32768

cdef bint is_scalar(object x) noexcept
cdef BaseArray as_operand(object x)
cdef object operand_error(Ufunc ufunc, object x1, object x2)
cdef object refused(Ufunc ufunc, object x1, object x2)
cdef object elsewhere(Ufunc ufunc, tuple operands, BaseArray out)
cdef int copy_into(BaseArray out, BaseArray x) except -1
cdef int fill(BaseArray out, object scalar) except -1
cdef BaseArray copy(BaseArray x)
cdef BaseArray cast(BaseArray x, int dtype)
cdef bint overlaps(BaseArray out, BaseArray x) noexcept
cdef object shape_error(str name, BaseArray a, BaseArray b)
cdef int call_public(Ufunc ufunc, Operands *operands, const Loop *loop) except -1
cdef void compute_loop(void *loop, char **data, const Walk *walk) noexcept nogil
cdef bint can_store(int dtype, int into) noexcept
cdef object unary(Ufunc ufunc, BaseArray x, BaseArray out)
cdef object binary(Ufunc ufunc, object x1, object x2, BaseArray out)
cdef object inplace(Ufunc ufunc, BaseArray x, object other)

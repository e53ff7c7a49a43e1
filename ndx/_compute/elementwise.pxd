from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Loop, Ufunc
from ndx._lib.layout cimport Walk

cdef BaseArray part(BaseArray x, Py_ssize_t offset)

cdef bint is_scalar(object x) noexcept
cdef BaseArray as_operand(object x)
cdef BaseArray operand_of(object x)
cdef bint is_number(object x) except -1
cdef bint is_subclass(object x) noexcept
cdef bint overrides_ufuncs(object x) except -1
cdef bint has_priority(object x) except -1
cdef bint computes_itself(object x) except -1
cdef Ufunc known_power(int dtype, object exponent)
cdef object operand_error(Ufunc ufunc, object x1, object x2)
cdef object shape_error(str name, BaseArray a, BaseArray b)
cdef int call_public(Ufunc ufunc, Operands *operands, const Loop *loop) except -1
cdef void compute_loop(void *loop, char **data, const Walk *walk) noexcept nogil
cdef int raise_current() except -1
cdef int check_output(str name, BaseArray out, int dtype) except -1
cdef object unary(Ufunc ufunc, BaseArray x, BaseArray out)
cdef object power(BaseArray x, object exponent, BaseArray out)
cdef object binary(Ufunc ufunc, object x1, object x2, BaseArray out)
cdef object pair(Ufunc ufunc, object x1, object x2)
cdef object inplace(Ufunc ufunc, BaseArray x, object other)

cpdef object clip_between(object x, object low, object high, object out)

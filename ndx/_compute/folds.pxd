from ndx._array.pinning cimport Compute
from ndx._compute.loops cimport Loop, Ufunc
from ndx._lib.layout cimport Walk

# Arguments of a reduction.
cdef struct Folding:
    const Loop *loop
    Compute run                      # `fold`, or a function like it
    Py_ssize_t itemsize
    bint decides                     # any element but the identity decides the result
    bint two_parts                  # an element is two numbers
    bint any_order                   # the result does not depend on the order
    bint in_order                    # parts of a reduced axis are not combined
    bint may_overflow                # parts of finite elements may be infinite
    bint failed                      # no memory for partial results
    double[2] identity               # the bytes of an element, aligned for any dtype

cdef bint is_in_order(Ufunc ufunc, int dtype)
cdef bint may_overflow(Ufunc ufunc, int dtype)
cdef bint any_infinite(const Folding *folding, const char *results,
                       Py_ssize_t nbytes) noexcept nogil
cdef void combine(const Folding *folding, char *a, char *b,
                  char *result) noexcept nogil
cdef Py_ssize_t first_half(Py_ssize_t count, bint two_parts) noexcept nogil
cdef void fold(void *folding, char **data, const Walk *walk) noexcept nogil
cdef void fold_parts(void *folding, char **data, const Walk *walk) noexcept nogil

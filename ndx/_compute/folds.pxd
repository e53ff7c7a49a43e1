from ndx._array.pinning cimport Compute, Operands
from ndx._compute.loops cimport Loop, Ufunc
from ndx._lib.layout cimport Walk

# Arguments of a reduction.
cdef struct Folding:
    const Loop *loop
    Compute run                      # `fold`, or a function like it
    Py_ssize_t itemsize              # of the result
    bint decides                     # any element but the identity decides the result
    bint two_parts                   # an element is two numbers
    bint any_order                   # the result does not depend on the order
    bint begun                       # the result has values that are no identity
    bint in_order                    # parts of a reduced axis are not combined
    bint may_overflow                # parts of finite elements may be infinite
    double[2] identity               # the bytes of an element, aligned for any dtype
    # Set by `run_fold`.
    bint failed                      # no memory for partial results
    int decided                      # atomic

cdef bint is_in_order(Ufunc ufunc, int dtype)
cdef bint may_overflow(Ufunc ufunc, int dtype)
cdef void combine(const Folding *folding, char *a, char *b,
                  char *result) noexcept nogil
cdef void fold(void *folding, char **data, const Walk *walk) noexcept nogil
cdef int run_fold(Folding *folding, Operands *operands, const Walk *walk,
                  const Py_ssize_t *itemsizes, str name) except -1

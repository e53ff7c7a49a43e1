from ndx._array.storage cimport BaseArray
from ndx._compute.loops cimport Ufunc

# Elements from which an operand is looked at; its bytes are compared later.
cdef enum:
    MANY = 1 << 15

cdef int learn_operators(BaseArray one) except -1
cdef BaseArray find_reusable(Ufunc ufunc, BaseArray x, object other)

# `x` if the result of an operator of it and `other` can take its memory, else None.
cdef inline BaseArray reusable(Ufunc ufunc, BaseArray x, object other):
    return None if x.size < MANY else find_reusable(ufunc, x, other)

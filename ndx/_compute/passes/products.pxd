from ndx._array.storage cimport BaseArray

# Computes the product of two matrices into a third.
ctypedef int (*Product)(BaseArray a, BaseArray b, BaseArray out) except -1

cdef bint multiply_steps(BaseArray a, BaseArray b, BaseArray out,
                         Product product) except -1

from ndx._array.pinning cimport Operands
from ndx._array.storage cimport BaseArray
from ndx._compute.passes.run cimport Advice
from ndx._compute.passes.settings cimport Settings

# A pass made of other operations on one part of the arrays after the other.
cdef class Steps:
    cdef Settings now
    cdef object token
    cdef object scope
    cdef str name
    cdef Py_ssize_t done
    cdef Py_ssize_t total
    cdef readonly Py_ssize_t memory      # bytes of files that stay in memory
    cdef bint streaming

    cdef int enter(self) except -1
    cdef int advise(self, BaseArray part, Advice advice, bint written) except -1
    cdef int ahead(self, BaseArray part) except -1
    cdef int behind(self, BaseArray part) except -1
    cdef int written(self, BaseArray part) except -1
    cdef int step(self, Py_ssize_t nbytes) except -1
    cdef int end(self) except -1

# Computes the product of two matrices into a third.
ctypedef int (*Product)(BaseArray a, BaseArray b, BaseArray out) except -1

cdef bint multiply_steps(BaseArray a, BaseArray b, BaseArray out,
                         Product product) except -1

cdef bint sort_steps(const Operands *held, int axis) except -1

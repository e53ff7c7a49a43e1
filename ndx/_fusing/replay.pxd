from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray
from ndx._fusing.execution cimport (
    MAX_AXES, MAX_CONSTANTS, MAX_PARAMETERS, MAX_SLOTS, Stage,
)

# What keeps a call of a program from being replayed.
cdef enum Hindrance:
    ERRORS = 1                   # floating-point errors are reported
    FILES                        # arrays in large files
    OVERLAP                      # arguments, of which one is written
    HINDRANCES                   # one more than there are

# An array that a call makes.
cdef struct Made:
    int dtype
    int ndim
    int order[MAX_AXES]
    Py_ssize_t shape[MAX_AXES]

cdef struct Parameter:
    int constant
    int position
    int dtype

cdef class Program:
    cdef int nargs
    cdef int nslots
    cdef int nstages
    cdef int nconstants
    cdef int nparameters
    cdef unsigned int used       # bits of arguments whose elements are read or written
    cdef unsigned int stored     # bits of arguments that are written
    cdef bint large
    cdef Made made[MAX_SLOTS]
    cdef Stage *stages
    cdef Parameter parameters[MAX_PARAMETERS]
    cdef char constants[MAX_CONSTANTS][16]
    cdef int result_slot         # of the only result; -1: see `result`
    cdef object result
    cdef readonly object about

    cdef object run(self, PyObject **arrays, PyObject **scalars)
    cdef int fill(self, Stage *stage, dict given) except -1
    cdef BaseArray make(self, int i)
    cdef object build(self, tuple spec, PyObject **arrays, list made)
    cdef int hindrance(self, PyObject **arrays) except -1

cdef bint are_apart(PyObject **arrays, int count, unsigned int used,
                    unsigned int stored) except -1

from ndx._array.storage cimport BaseArray
from ndx._lib.dtypes cimport NDTYPES
from ndx._lib.numpy_private cimport LoopFunction

cdef enum:
    LONG = 32768                 # about as many operations take longer than the GIL
    MOST_OPERANDS = 4
    MOST_CORES = 3

cdef class Gufunc:
    cdef int nin
    cdef int nargs
    cdef int ncores                              # lengths that the signature names
    cdef int axes[MOST_OPERANDS]                 # of each operand's core
    cdef int lengths[MOST_OPERANDS][2]           # which of the lengths these axes have
    cdef LoopFunction functions[NDTYPES]         # by the first operand's dtype; or NULL
    cdef void *data[NDTYPES]
    cdef int dtypes[NDTYPES][MOST_OPERANDS]

    cdef int read_signature(self, str signature) except -1
    cdef int find_loops(self, object public) except -1
    cdef list compute(self, list inputs, Py_ssize_t other)
    cdef bint run(self, list operands, char *constant, bint large) except? True

cdef tuple least_squares(BaseArray a, BaseArray b, double tolerance)
cdef object decompose(str name, tuple args, dict kwargs)

cdef BaseArray along_axis(str name, BaseArray x, object n, object axis, object norm)
cdef BaseArray along_axes(str name, BaseArray x, object s, object axes, object norm)

from ndx._lib.dtypes cimport NDTYPES
from ndx._lib.free_threading cimport ndx_get_int
from ndx._lib.layout cimport Walk
from ndx._lib.numpy_private cimport LoopFunction

# Adds the sum of contiguous elements to a total, in NumPy's order.
ctypedef void (*SumFunction)(
    char *total, const char *x, Py_ssize_t count) noexcept nogil

cdef enum:
    UNKNOWN = -2             # a loop that was not looked for yet

# The loop of one operation for one dtype of its operands.

cdef struct Loop:
    LoopFunction function    # NULL: only NumPy's public function computes it
    void *data
    int in_dtype             # operands are cast to it; -1: not supported; UNKNOWN
    int second_dtype         # the second operand is cast to it
    int out_dtype
    int short_row            # elements: innermost axes up to here are gathered
    SumFunction sum          # of contiguous elements; NULL: `function` sums them

cdef class Ufunc:
    cdef readonly str name
    cdef readonly object public
    cdef readonly str domain
    cdef int nin
    cdef int nout                   # if there are two, of one dtype
    cdef int cycles                 # of an element, besides the memory's time
    cdef bint may_set_error         # whether a loop may set a Python error
    cdef bint like_numpy            # not the standard's special values
    cdef Loop loops[NDTYPES]        # see `loop_of` and `any_loop`
    cdef Loop mixed[2]              # see `mixed_loop`

    cdef Loop no_loop(self) except *
    cdef int choose(self, Loop *loop, int dtype) except -1
    cdef int find(self, int dtype) except -1
    cdef int find_mixed(self, int i) except -1
    cdef int require(self, int dtype) except -1

# The loop for operands of one dtype; TypeError if there is none.
cdef inline const Loop *loop_of(Ufunc ufunc, int dtype) except NULL:
    if ndx_get_int(&ufunc.loops[dtype].in_dtype) < 0:
        ufunc.require(dtype)
    return &ufunc.loops[dtype]

# The same; its `in_dtype` is -1 if there is none.
cdef inline const Loop *any_loop(Ufunc ufunc, int dtype) except NULL:
    if ndx_get_int(&ufunc.loops[dtype].in_dtype) == UNKNOWN:
        ufunc.find(dtype)
    return &ufunc.loops[dtype]

cdef const Loop *mixed_loop(Ufunc ufunc, int a, int b) except? NULL
cdef Ufunc find_ufunc(str name)
cdef Ufunc find_numpy_ufunc(str name)
cdef void run_elementwise(const Loop *loop, int nargs, char **data,
                          const Walk *walk) noexcept nogil
cdef void run_short(const Loop *loop, int nargs, char **data, const Walk *walk,
                    const Py_ssize_t *itemsizes) noexcept nogil
cdef void run_reduce(const Loop *loop, char *out, char *x,
                     const Walk *walk) noexcept nogil
cdef void run_gathered(const Loop *loop, char *out, char *x, const Walk *walk,
                       Py_ssize_t itemsize) noexcept nogil
cdef void run_stacked(const Loop *loop, char **data, const Walk *batch,
                      const Py_ssize_t *core_sizes,
                      const Py_ssize_t *core_strides) noexcept nogil

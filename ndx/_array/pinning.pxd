from cpython.object cimport PyObject

from ndx._array.storage cimport BaseArray, require_intact_file, require_live
from ndx._blocks.block cimport block_unpin
from ndx._lib.free_threading cimport NDX_FREE_THREADED
from ndx._lib.layout cimport MAXOPS, Walk

# The arrays (the result included) and constants of an operation. The arrays are
# borrowed references: the caller owns them.
cdef struct Operands:
    int count
    PyObject *arrays[MAXOPS]         # BaseArray; NULL: a constant
    char *data[MAXOPS]               # for arrays: set by `locate`

# A function in C. It runs no Python, and keeps none of the pointers.
ctypedef void (*Compute)(void *arg, char **data, const Walk *walk) noexcept nogil
ctypedef void (*Work)(void *arg) noexcept nogil

cdef int locate(Operands *operands) except -1
cdef int recheck_all(const Operands *operands) except -1
cdef int hold(Operands *operands) except -1
cdef int let_go(Operands *operands) except -1
cdef int compute_held(Operands *operands, const Walk *walk, Compute function,
                      void *arg) except -1
cdef int compute_pinned(Operands *operands, const Walk *walk, Compute function,
                        void *arg) except -1
cdef int unlocked(const Operands *operands, Work function, void *arg) except -1
cdef object view_of(const Operands *operands, int index)

cdef inline void put(Operands *operands, BaseArray x) noexcept:
    """Append an array."""
    operands.arrays[operands.count] = <PyObject *>x
    operands.count += 1

cdef inline void put_constant(Operands *operands, char *value) noexcept:
    """Append a constant in the caller's memory; NULL: the operand is absent."""
    operands.arrays[operands.count] = NULL
    operands.data[operands.count] = value
    operands.count += 1

cdef inline void put_same(Operands *operands, const Operands *others,
                          int index) noexcept:
    """Append an operand of others."""
    operands.arrays[operands.count] = others.arrays[index]
    operands.data[operands.count] = others.data[index]
    operands.count += 1

cdef int pin_live(BaseArray x) except -1

# For a few elements that are read or written at once, without Python: what begins is
# ended. With a GIL a check is enough.
cdef inline int begin_use(BaseArray x) except -1:
    """Check that an array is valid, and stays where it is until `end_use`."""
    return pin_live(x) if NDX_FREE_THREADED else require_live(x)

cdef inline int end_use(BaseArray x) except -1:
    if NDX_FREE_THREADED:
        block_unpin(x.block)
    return require_intact_file(x)

cdef inline int begin_all(Operands *operands) except -1:
    """Locate operands, which stay where they are until `end_all`."""
    return hold(operands) if NDX_FREE_THREADED else locate(operands)

cdef inline int end_all(Operands *operands) except -1:
    return let_go(operands) if NDX_FREE_THREADED else recheck_all(operands)

cdef inline int compute_on(Operands *operands, const Walk *walk, Compute function,
                           void *arg, bint large) except -1:
    """Compute on operands; if `large`, without the GIL and with operands pinned."""
    if large:
        return compute_held(operands, walk, function, arg)
    if NDX_FREE_THREADED:
        return compute_pinned(operands, walk, function, arg)
    locate(operands)
    function(arg, operands.data, walk)
    return recheck_all(operands)

"""The one way to the memory of arrays for what takes long, or may run Python.

Whenever Python runs, or another thread has the GIL, a scope may end and its memory be
used again, a block may move to another place, an array may be closed. So nobody keeps
a pointer to an array's memory over such a moment. An operation names its arrays, its
result among them (`Operands`), and

- `compute_on` looks whether each is valid, takes the pointers, and calls a function in
  C: at once, with the GIL, or `large`, without it and with the arrays held;
- between `hold` and `let_go` the arrays are held for what is more than one such call: a
  function of NumPy's on `view_of` them, which may release the GIL, or a pass, which
  calls the user's callback.

What is held is not used again when its scope ends: the block is retired, and taken back
when it is let go. An array whose scope ended in the meantime is stale all the same.

`unlocked` releases the GIL. No other code does that in order to compute
(tools/check_memory.py). In builds for sanitizers (`NDX_CHECKED`) it asserts that the
operands are held, and lie within their blocks.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from ndx._array.storage cimport (
    BaseArray, data_of, find_loss, strided, transient_view, wait_until_live,
)
from ndx._blocks.block cimport Block, block_is_live, block_pin, block_unpin
from ndx._files.mapping cimport losses
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport Strided, Walk, byte_bounds

cdef extern from "ndx/internal/checked.h" nogil:
    const bint NDX_CHECKS
    void ndx_require(bint condition, const char *what)


cdef int locate(Operands *operands) except -1:
    """Set the pointers to arrays that are all valid; StaleArrayError if one is not.

    They hold until Python runs, or the GIL is released.
    """
    cdef bint waited = True
    cdef int i
    while waited:
        waited = False
        for i in range(operands.count):
            if operands.arrays[i] == NULL:
                continue
            if not block_is_live((<BaseArray>operands.arrays[i]).block):
                # For a device: meanwhile the others may have become stale.
                wait_until_live(<BaseArray>operands.arrays[i])
                waited = True
            operands.data[i] = data_of(<BaseArray>operands.arrays[i])
    return 0


cdef int recheck_all(const Operands *operands) except -1:
    """Raise if an operand can't be read from its file."""
    cdef int i
    if losses[0] != 0:
        for i in range(operands.count):
            if operands.arrays[i] != NULL:
                find_loss(<BaseArray>operands.arrays[i])
    return 0


cdef int hold(Operands *operands) except -1:
    """Locate arrays, and keep them where they are until `let_go`."""
    cdef int i
    locate(operands)
    for i in range(operands.count):
        if operands.arrays[i] != NULL:
            Py_INCREF(<object>operands.arrays[i])
            block_pin((<BaseArray>operands.arrays[i]).block)
    return 0


cdef int let_go(Operands *operands) except -1:
    """End `hold`; raise if an operand can't be read from its file."""
    cdef int i
    for i in range(operands.count):
        if operands.arrays[i] != NULL:
            block_unpin((<BaseArray>operands.arrays[i]).block)
    try:
        recheck_all(operands)
    finally:
        for i in range(operands.count):
            if operands.arrays[i] != NULL:
                Py_DECREF(<object>operands.arrays[i])
    return 0


cdef object view_of(const Operands *operands, int index):
    """Return a NumPy array over a held one, for as long as that is held."""
    return transient_view(<BaseArray>operands.arrays[index])


# What `compute_held` calls without the GIL.
cdef struct Call:
    Compute function
    void *arg
    char **data
    const Walk *walk


cdef void run_call(void *arg) noexcept nogil:
    cdef const Call *call = <const Call *>arg
    call.function(call.arg, call.data, call.walk)


cdef int compute_held(Operands *operands, const Walk *walk, Compute function,
                      void *arg) except -1:
    """Compute without the GIL."""
    cdef Call call
    call.function = function
    call.arg = arg
    call.data = operands.data
    call.walk = walk
    hold(operands)
    try:
        return unlocked(operands, run_call, &call)
    finally:
        let_go(operands)


cdef int unlocked(const Operands *operands, Work function, void *arg) except -1:
    """Call a function without the GIL; the operands are held."""
    if NDX_CHECKS:
        require_held(operands)
    with nogil:
        function(arg)
    if NDX_CHECKS:
        require_held(operands)
    return 0


cdef void require_held(const Operands *operands) noexcept:
    """Abort unless each operand is pinned, where it was, and within its block."""
    cdef Strided layout
    cdef Py_ssize_t low = 0, high = 0
    cdef BaseArray x
    cdef Block *block
    cdef int i
    for i in range(operands.count):
        if operands.arrays[i] == NULL:
            continue
        x = <BaseArray>operands.arrays[i]
        block = x.block
        ndx_require(block.pins > 0, "an operand is not pinned")
        ndx_require(operands.data[i] == data_of(x), "the block of an operand has moved")
        if <PyObject *>x.owner != NULL or block.keeper != NULL:
            # What others own may be strided, and its block is as long as its elements.
            continue
        strided(x, &layout)
        byte_bounds(&layout, itemsize_of[x.dtype], &low, &high)
        ndx_require(low == high or (x.offset + low >= 0
                                    and x.offset + high <= <Py_ssize_t>block.nbytes),
                    "an operand reaches beyond its block")

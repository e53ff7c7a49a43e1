"""Pinning: access to arrays' memory for operations that may run Python or take long.

Whenever Python runs, or another thread has the GIL, a scope may end and its memory be
reused, a block may move, an array may be closed. Therefore no pointer to an array's
memory is kept across such a moment. An operation lists its arrays, its result included
(`Operands`). Then

- `compute_on` checks that each array is valid, takes the pointers, and calls a C
  function: with the GIL or, if `large`, without it and with the arrays pinned;
- `hold` and `let_go` pin the arrays for longer: for a NumPy function on `view_of` them,
  which may release the GIL, or for a pass, which calls the user's callback.

If a scope ends, the memory of pinned blocks is not reused: these blocks are retired,
and released when they are unpinned. Their arrays are stale all the same.

`unlocked` releases the GIL. No other code does that in order to compute
(tools/check_memory.py). In builds for sanitizers (`NDX_CHECKED`) it asserts that the
operands are pinned, and lie within their blocks.
"""

from cpython.ref cimport Py_DECREF, Py_INCREF

from ndx._array.storage cimport (
    BaseArray, data_of, find_loss, holds_number, own_block, strided, transient_view,
    wait_until_live,
)
from ndx._blocks.block cimport Block, block_is_live, block_pin, block_unpin
from ndx._files.mapping cimport any_lost
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.free_threading cimport ndx_get_int
from ndx._lib.layout cimport Strided, Walk, byte_bounds

cdef extern from "Python.h":
    void *PyErr_Occurred() noexcept

cdef extern from "ndx/internal/checked.h" nogil:
    const bint NDX_CHECKS
    void ndx_require(bint condition, const char *what)


cdef int locate(Operands *operands) except -1:
    """Check that all arrays are valid (else StaleArrayError), and set the pointers.

    The pointers are valid until Python runs, or the GIL is released.
    """
    cdef bint waited = True
    cdef int i
    while waited:
        waited = False
        for i in range(operands.count):
            if operands.arrays[i] == NULL:
                continue
            if not block_is_live((<BaseArray>operands.arrays[i]).block):
                # This may wait for a device. Other operands may become stale meanwhile.
                wait_until_live(<BaseArray>operands.arrays[i])
                waited = True
            operands.data[i] = data_of(<BaseArray>operands.arrays[i])
    return 0


cdef int pin_live(BaseArray x) except -1:
    """Pin an array, if it is valid: then no scope that ends can reuse its memory."""
    block_pin(x.block)
    if not block_is_live(x.block):
        try:
            wait_until_live(x)
        except BaseException:
            block_unpin(x.block)
            raise
    return 0


cdef int recheck_all(const Operands *operands) except -1:
    """Raise if the file of an operand could not be read."""
    cdef int i
    if any_lost():
        for i in range(operands.count):
            if operands.arrays[i] != NULL:
                find_loss(<BaseArray>operands.arrays[i])
    return 0


cdef int hold(Operands *operands) except -1:
    """Pin the arrays until `let_go`, and locate them."""
    cdef int i
    for i in range(operands.count):
        # A number may be the result, whose element is to be in the object itself.
        if operands.arrays[i] != NULL and not holds_number(
                <BaseArray>operands.arrays[i]):
            own_block(<BaseArray>operands.arrays[i])
    # Pinned first: a scope that another thread ends now sees that, or is seen.
    for i in range(operands.count):
        if operands.arrays[i] != NULL:
            Py_INCREF(<object>operands.arrays[i])
            block_pin((<BaseArray>operands.arrays[i]).block)
    try:
        locate(operands)
    except BaseException:
        let_go(operands)
        raise
    return 0


cdef int let_go(Operands *operands) except -1:
    """Undo `hold`; raise if the file of an operand could not be read."""
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
    """Return a NumPy array over a pinned operand; it must die before `let_go`."""
    return transient_view(<BaseArray>operands.arrays[index])


# The arguments of `run_call`, which `compute_held` calls without the GIL.
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
    """Pin the operands, and compute without the GIL."""
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


cdef int compute_pinned(Operands *operands, const Walk *walk, Compute function,
                        void *arg) except -1:
    """Compute at once, with the operands pinned: other threads run without a GIL."""
    hold(operands)
    try:
        function(arg, operands.data, walk)
    finally:
        let_go(operands)
    return 0


cdef int unlocked(const Operands *operands, Work function, void *arg) except -1:
    """Call a function without the GIL; the operands are pinned.

    It may set a Python error: a loop's, or that of a signal's handler.
    """
    if NDX_CHECKS:
        require_held(operands)
    with nogil:
        function(arg)
    if NDX_CHECKS:
        require_held(operands)
    return -1 if PyErr_Occurred() != NULL else 0


cdef void require_held(const Operands *operands) noexcept:
    """Abort unless each operand is pinned, has not moved, and is within its block."""
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
        ndx_require(ndx_get_int(&block.pins) > 0, "an operand is not pinned")
        ndx_require(operands.data[i] == data_of(x), "the block of an operand has moved")
        if <PyObject *>x.base != NULL or block.memory_owner != NULL or holds_number(x):
            # Foreign memory may be strided; its block counts only the elements' bytes.
            continue
        strided(x, &layout)
        byte_bounds(&layout, itemsize_of[x.dtype], &low, &high)
        ndx_require(low == high or (x.offset + low >= 0
                                    and x.offset + high <= <Py_ssize_t>block.nbytes),
                    "an operand reaches beyond its block")

"""Temporaries whose memory the result of an operator takes.

In ``a * b + c`` nobody but the interpreter's stack refers to the product. The sum is
written over it, needs no memory of its own, and one array less goes through the caches.
`internal/callers.h` tells such operands from those that C code holds.

NumPy does the same (``numpy/_core/src/multiarray/temp_elide.c``).
"""

from cpython.object cimport PyObject
from libc.string cimport memcpy

from ndx._arenas.arena cimport Arena
from ndx._array.storage cimport has_shape, is_array, new_view, set_layout
from ndx._blocks.block cimport Block, block_is_live
from ndx._compute.elementwise cimport is_scalar
from ndx._compute.loops cimport Loop, any_loop
from ndx._context.context cimport Context, arena_of, backend_of, top_context
from ndx._lib.dtypes cimport itemsize_of, promote_table, scalar_dtype
from ndx._lib.layout cimport MAXDIMS, broadcast_into
from ndx.backends.base cimport Backend

from ndx._compute.operator_calls import calls_of_operators

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *x) noexcept

cdef extern from "ndx/internal/callers.h":
    bint ndx_callers_know(void *ours) noexcept
    bint ndx_callers_learn() noexcept
    int ndx_callers_count() noexcept
    bint ndx_is_temporary(PyObject *x) noexcept
    bint ndx_has_weakrefs(PyObject *x) noexcept
    void *ndx_add_of(type cls) noexcept

# As in NumPy: below, to look at the callers costs more than it saves.
cdef Py_ssize_t WORTH = 256 * 1024
cdef bint learning = False


class _LearnedError(Exception):
    """The caller of an operator is known now, and need not compute."""


cdef int learn_operators(BaseArray one) except -1:
    """Learn how the interpreter calls the operators of arrays, from an element."""
    global learning
    cdef BaseArray x = new_view(one, 1)
    x.shape[0], x.strides[0] = MANY, 0
    set_layout(x)
    if not (ndx_callers_know(<void *>find_reusable)
            and ndx_callers_know(ndx_add_of(type(x)))):
        return 0
    learning = True
    try:
        for call in calls_of_operators(x):
            try:
                call()
            except _LearnedError:
                continue
    finally:
        learning = False
    return 0


def known_callers():
    """Return how many ways from the interpreter to an operator are known.

    If none is, no results are written over temporaries.
    """
    return ndx_callers_count()


cdef bint is_alone(BaseArray x) noexcept:
    """Whether nothing else sees the memory of an array, which is ours and all of it."""
    cdef Block *block = x.block
    cdef size_t nbytes = x.size * itemsize_of[x.dtype]
    return (
        block.refs == 1 and block.pins == 0 and block.exports == NULL
        and block.device == 0 and not block.readonly and not block.retired
        and block.memory_owner == NULL
        and (block.backend != NULL or block.parent != NULL)  # a pool's, or an arena's
        and block_is_live(block) and not x.readonly and x.c_contiguous
        and x.offset == 0 and block.nbytes - nbytes <= nbytes / 8
        and not ndx_has_weakrefs(<PyObject *>x))


cdef bint is_where_results_go(Block *block):
    """Whether a new block would come from where this one does, and live as long."""
    cdef Context context = top_context()
    cdef Arena arena = arena_of(context)
    cdef Backend backend
    if arena is not None:
        return block.clock == <PyObject *>arena.clock
    backend = backend_of(context)
    return block.clock == NULL and block.backend == <PyObject *>backend


cdef int dtype_with(BaseArray x, object other) except -2:
    """Return the dtype of an operation that broadcasts `other` to `x`; -1: it can't."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray b
    if not is_array(other):
        return scalar_dtype(x.dtype, other) if is_scalar(other) else -1
    b = <BaseArray>other
    memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    if b.block.device or b.ndim > x.ndim or not has_shape(
            x, broadcast_into(x.ndim, shape, b.ndim, b.shape), shape):
        return -1
    return promote_table[x.dtype][b.dtype]


cdef BaseArray find_reusable(Ufunc ufunc, BaseArray x, object other):
    """Return `x` if the result of an operator can take its memory, else None.

    `other` is the other operand, on either side.
    """
    cdef const Loop *loop
    cdef int dtype
    if learning:
        ndx_callers_learn()
        raise _LearnedError
    if Py_REFCNT(<PyObject *>x) != 1 or x.size * itemsize_of[x.dtype] < WORTH \
            or ufunc.may_set_error or not is_alone(x):
        return None
    dtype = dtype_with(x, other)
    if dtype != x.dtype:
        return None
    loop = any_loop(ufunc, dtype)
    if loop.in_dtype != dtype or loop.out_dtype != dtype or loop.function == NULL:
        return None
    if is_where_results_go(x.block) and ndx_is_temporary(<PyObject *>x):
        return x
    return None

"""Elementwise operations on many elements, in parts that threads take in turn."""

from ndx._array.pinning cimport Compute, Operands, compute_held
from ndx._array.storage cimport BaseArray
from ndx._compute.aliasing cimport is_distinct
from ndx._compute.passes.tiles cimport Grid, cut, find_place, tile_walk, walk_size
from ndx._compute.threads cimport parallel_for, thread_count
from ndx._lib.dtypes cimport KIND_COMPLEX, kind_of
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk, walk_merge

cdef enum:
    # Bytes of all operands from which threads pay: measured with 2 of them.
    WORTHWHILE = 2 << 20
    WORTHWHILE_IF_SLOW = 640 << 10
    PART = 256 << 10
    LINE = 64                    # elements: whole cache lines of any dtype

# Operations that take several times as long as reading and writing their elements.
cdef frozenset slow = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "exp",
    "expm1", "floor_divide", "hypot", "log", "log10", "log1p", "log2", "logaddexp",
    "nextafter", "pow", "remainder", "sin", "sinh", "tan", "tanh",
))
SLOW = slow  # for Python


# An operation cut into parts.
cdef struct Parts:
    Compute function
    void *arg
    char **data
    const Walk *walk
    Grid grid


cdef int compute_parts(Operands *operands, const Walk *walk,
                       const Py_ssize_t *itemsizes, Compute function, void *arg,
                       str name) except -1:
    """Compute on held operands without the GIL; on all threads where that pays.

    `function` computes each element of the last operand from the same element of the
    others. Of several values for one place the last is kept, by one thread.
    """
    cdef Parts parts
    cdef Py_ssize_t each = 0, least = WORTHWHILE
    cdef int op, last = walk.ndim - 1
    for op in range(walk.nops):
        each += itemsizes[op]
    if name in slow:
        least = WORTHWHILE_IF_SLOW
    if last < 0 or walk_size(walk) < least // each \
            or (thread_count() < 2 and not depends_on_parts(operands, name)) \
            or not is_distinct(walk.ndim, walk.shape, walk.strides[walk.nops - 1],
                               itemsizes[walk.nops - 1]):
        return compute_held(operands, walk, function, arg)
    cut(&parts.grid, walk, itemsizes, PART, -1, 0)
    if parts.grid.tile[last] < walk.shape[last]:
        # No two threads write to one cache line.
        parts.grid.tile[last] += -parts.grid.tile[last] & (LINE - 1)
        parts.grid.total //= parts.grid.counts[last]
        parts.grid.counts[last] = \
            (walk.shape[last] + parts.grid.tile[last] - 1) // parts.grid.tile[last]
        parts.grid.total *= parts.grid.counts[last]
    parts.function = function
    parts.arg = arg
    return compute_held(operands, walk, compute_all, &parts)


cdef bint depends_on_parts(const Operands *operands, str name):
    """Whether the last bits depend on the steps and lengths that loops are called with.

    One thread then computes the same parts as more do, so that results are equal.
    Operations on real numbers that are not slow are exact.
    """
    cdef int op
    for op in range(operands.count):
        if operands.arrays[op] != NULL and kind_of[
                (<BaseArray>operands.arrays[op]).dtype] == KIND_COMPLEX:
            return True
    return name in slow


cdef void compute_all(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Parts *parts = <Parts *>arg
    parts.data = data
    parts.walk = walk
    parallel_for(parts.grid.total, compute_part, parts)


cdef void compute_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Parts *parts = <const Parts *>arg
    cdef Py_ssize_t place[MAXDIMS]
    cdef char *data[MAXOPS]
    cdef Walk tile
    cdef int op, axis
    find_place(&parts.grid, index, place)
    tile_walk(&parts.grid, place, parts.walk, &tile)
    for op in range(tile.nops):
        data[op] = parts.data[op]
        for axis in range(tile.ndim):
            data[op] += place[axis] * parts.grid.tile[axis] * tile.strides[op][axis]
    walk_merge(&tile)
    parts.function(parts.arg, data, &tile)

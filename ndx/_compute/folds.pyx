"""Reductions in C: of one stretch of memory, or of parts that threads take in turn.

How an array is cut depends on its layout, never on the number of threads, and partial
results are combined in a fixed order. So the result is the same for any number.

- Several rows of the result are computed each for itself, as without threads.
- One contiguous stretch is cut where pairwise summation cuts it, so that the sum is
  NumPy's, to the last bit.
- Else the outermost reduced axis is cut, and each part has a row of partial results.

Products of floats are not cut along reduced axes. A part of which the product is too
large is infinite, and infinity times another part's zero is not a number, where NumPy
has zero.

Sums of floats are cut, but computed once more in order if a part is infinite: the sum
of the rest may be of the other sign, so that NumPy's is finite.
"""

from libc.math cimport isinf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ndx._compute.loops cimport Ufunc, run_gathered, run_reduce
from ndx._compute.passes.tiles cimport Grid, find_place, tile_walk, walk_size
from ndx._compute.threads cimport parallel_for
from ndx._lib.dtypes cimport KIND_FLOAT, kind_of
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk, walk_merge

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)
    bint ndx_flag_is_up(int *flag)

cdef extern from "ndx/internal/fill.h" nogil:
    void ndx_fill(char *dst, size_t nbytes, const char *item, size_t itemsize) noexcept

cdef enum:
    WORTHWHILE = 1 << 20         # bytes of the operand that are cut at all
    PART = 128 << 10             # bytes of a part, or somewhat more
    SHORT = 8                    # elements of a row
    NARROW = 17                  # elements of a row, if their order does not matter
    LONG = 16                    # rows
    STRIP = 1024                 # fewest elements of a part's contiguous stretch
    LINE = 64                    # elements: whole cache lines of any dtype
    ENOUGH = 16                  # parts
    LEAVES = 1024                # the most parts of a contiguous stretch, a power of 2
    ROWS = 32                    # the most rows of partial results


cdef bint is_in_order(Ufunc ufunc, int dtype):
    """Whether partial results may not be combined (see above)."""
    return ufunc.name == "multiply" and kind_of[dtype] >= KIND_FLOAT


cdef bint may_overflow(Ufunc ufunc, int dtype):
    """Whether a part of finite elements can be infinite, but not all of them."""
    return ufunc.name == "add" and kind_of[dtype] >= KIND_FLOAT


cdef bint any_infinite(const Folding *folding, const char *results,
                       Py_ssize_t nbytes) noexcept nogil:
    """Whether one of some results, which are floats, is infinite."""
    cdef Py_ssize_t i
    if folding.itemsize >> folding.two_parts == sizeof(float):
        for i in range(nbytes // <Py_ssize_t>sizeof(float)):
            if isinf((<const float *>results)[i]):
                return True
        return False
    for i in range(nbytes // <Py_ssize_t>sizeof(double)):
        if isinf((<const double *>results)[i]):
            return True
    return False


cdef void fold(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate operand 1 into operand 0."""
    cdef const Folding *folding = <const Folding *>arg
    cdef int op, last = walk.ndim - 1
    cdef int few = SHORT // 2 if folding.two_parts else SHORT
    if folding.any_order:
        few = NARROW
    cdef Walk turned
    if last < 1 or walk.strides[0][last] != 0:
        run_reduce(folding.loop, data[0], data[1], walk)
    elif walk.strides[0][last - 1] == 0 or walk.shape[last] >= few \
            or walk.shape[last - 1] < LONG:
        run_gathered(folding.loop, data[0], data[1], walk, folding.itemsize)
    else:
        # Many short rows: their first elements, their second ones, and so on. Fewer
        # than 8 floats are summed in this order anyway.
        memcpy(&turned, walk, sizeof(Walk))
        turned.shape[last] = walk.shape[last - 1]
        turned.shape[last - 1] = walk.shape[last]
        for op in range(2):
            turned.strides[op][last] = walk.strides[op][last - 1]
            turned.strides[op][last - 1] = walk.strides[op][last]
        run_reduce(folding.loop, data[0], data[1], &turned)


cdef void fold_parts(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate into operand 0, in parts if operand 1 is large.

    `Folding.run` accumulates a part; it may read more operands.
    """
    cdef Folding *folding = <Folding *>arg
    cdef Rows rows
    if walk.ndim == 0 or walk_size(walk) < WORTHWHILE // folding.itemsize:
        folding.run(folding, data, walk)
    elif walk.ndim == 1 and walk.strides[0][0] == 0 and not folding.in_order:
        fold_stretch(folding, data, walk)
    elif cut_kept(&rows.grid, walk, folding.itemsize):
        rows.folding = folding
        rows.data = data
        rows.walk = walk
        rows.step = 0
        parallel_for(rows.grid.total, fold_rows, &rows)
    elif folding.in_order:
        folding.run(folding, data, walk)
    else:
        fold_partially(folding, data, walk)


# ------------------------------------------------------------- rows of the result

# A reduction cut along some axes.
cdef struct Rows:
    Folding *folding
    char **data
    const Walk *walk
    Grid grid
    Py_ssize_t step                  # bytes from one row of partial results to the next


cdef bint cut_kept(Grid *grid, const Walk *walk, Py_ssize_t itemsize) noexcept nogil:
    """Cut the axes that the result keeps; return whether that gives enough parts."""
    cdef Py_ssize_t nbytes = walk_size(walk) * itemsize, count
    cdef int axis, last = walk.ndim - 1
    grid.ndim = walk.ndim
    grid.total = 1
    for axis in range(walk.ndim):
        grid.shape[axis] = grid.tile[axis] = walk.shape[axis]
        grid.counts[axis] = 1
        if walk.strides[0][axis] == 0 or nbytes <= PART:
            continue
        # From the outermost axis on, as many parts as are needed.
        count = min(walk.shape[axis], (nbytes + PART - 1) // PART)
        grid.tile[axis] = (walk.shape[axis] + count - 1) // count
        if axis == last:
            grid.tile[axis] = max(STRIP, grid.tile[axis])
            grid.tile[axis] += -grid.tile[axis] & (LINE - 1)
        grid.counts[axis] = \
            (walk.shape[axis] + grid.tile[axis] - 1) // grid.tile[axis]
        grid.total *= grid.counts[axis]
        nbytes //= grid.counts[axis]
    return grid.total >= ENOUGH or (grid.total > 1 and nbytes <= PART)


cdef void fold_rows(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Rows *rows = <const Rows *>arg
    cdef Py_ssize_t place[MAXDIMS]
    cdef char *data[MAXOPS]
    cdef Walk tile
    cdef int axis, op
    find_place(&rows.grid, index, place)
    tile_walk(&rows.grid, place, rows.walk, &tile)
    for op in range(tile.nops):
        data[op] = rows.data[op]
        for axis in range(tile.ndim):
            data[op] += place[axis] * rows.grid.tile[axis] * tile.strides[op][axis]
    data[0] += index * rows.step
    walk_merge(&tile)
    rows.folding.run(rows.folding, data, &tile)


# ---------------------------------------------------------------- one stretch

# A stretch of elements with one stride, and the results of its leaves.
cdef struct Stretch:
    Folding *folding
    char **data
    const Walk *walk
    int depth
    int decided
    char results[16 * LEAVES]


cdef Py_ssize_t first_half(Py_ssize_t count, bint two_parts) noexcept nogil:
    """Return the elements of the first half, as NumPy's pairwise sum divides them."""
    cdef Py_ssize_t half = count if two_parts else count // 2
    half -= half % 8
    return half // 2 if two_parts else half


cdef void fold_stretch(Folding *folding, char **data, const Walk *walk) noexcept nogil:
    cdef Stretch stretch
    cdef char[16] result
    cdef Py_ssize_t itemsize = folding.itemsize, width, i
    stretch.folding = folding
    stretch.data = data
    stretch.walk = walk
    stretch.decided = False
    stretch.depth = 0
    while (2 << stretch.depth) <= LEAVES \
            and (walk.shape[0] >> (stretch.depth + 1)) * itemsize >= PART:
        stretch.depth += 1
    width = 1 << stretch.depth
    for i in range(width):
        memcpy(stretch.results + i * itemsize, <char *>folding.identity, itemsize)
    if folding.decides:
        # The first leaf often decides; then no thread is woken.
        fold_leaf(&stretch, 0)
    if not stretch.decided:
        parallel_for(width, fold_leaf, &stretch)
    while width > 1:
        width //= 2
        for i in range(width):
            combine(folding, stretch.results + 2 * i * itemsize,
                    stretch.results + (2 * i + 1) * itemsize, result)
            memcpy(stretch.results + i * itemsize, result, itemsize)
    combine(folding, data[0], stretch.results, result)
    memcpy(data[0], result, itemsize)


cdef void combine(const Folding *folding, char *a, char *b,
                  char *result) noexcept nogil:
    cdef char *args[3]
    cdef Py_ssize_t count = 1
    cdef Py_ssize_t[3] steps = [folding.itemsize, folding.itemsize, folding.itemsize]
    args[0] = a
    args[1] = b
    args[2] = result
    folding.loop.function(args, &count, steps, folding.loop.data)


cdef void fold_leaf(void *arg, Py_ssize_t index) noexcept nogil:
    cdef Stretch *stretch = <Stretch *>arg
    cdef Folding *folding = stretch.folding
    cdef Py_ssize_t start = 0, count = stretch.walk.shape[0], half
    cdef char *data[MAXOPS]
    cdef char *result = stretch.results + index * folding.itemsize
    cdef Walk leaf
    cdef int level, op
    if folding.decides and ndx_flag_is_up(&stretch.decided):
        return
    for level in range(stretch.depth - 1, -1, -1):
        half = first_half(count, folding.two_parts)
        if index >> level & 1:
            start += half
            count -= half
        else:
            count = half
    leaf.ndim = 1
    leaf.nops = stretch.walk.nops
    leaf.shape[0] = count
    for op in range(leaf.nops):
        leaf.strides[op][0] = stretch.walk.strides[op][0]
        data[op] = stretch.data[op] + start * leaf.strides[op][0]
    data[0] = result
    folding.run(folding, data, &leaf)
    if folding.decides and result[0] != (<const char *>folding.identity)[0]:
        ndx_raise_flag(&stretch.decided)


# ------------------------------------------------------------- partial results

cdef void fold_partially(Folding *folding, char **data,
                         const Walk *walk) noexcept nogil:
    """Cut the outermost reduced axis, and combine the rows of partial results."""
    cdef Rows rows
    cdef Walk cut, together
    cdef char *room = NULL
    cdef char *parts[MAXOPS]
    cdef Py_ssize_t itemsize = folding.itemsize, kept = 1, count
    cdef int axis, chosen = -1
    memcpy(&cut, walk, sizeof(Walk))
    # The last axis of `together` varies fastest: the rows are added one by one.
    together.ndim = 1
    together.nops = 2
    # The rows have the kept axes in the walk's order.
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] != 0:
            cut.strides[0][axis] = kept * itemsize
            kept *= walk.shape[axis]
        else:
            chosen = axis
    count = min(walk.shape[chosen] if chosen >= 0 else 1, ROWS,
                walk_size(walk) * itemsize // (2 * PART))
    if count > 1:
        room = <char *>malloc(count * kept * itemsize)
        folding.failed = room == NULL
    if room == NULL:
        if not folding.failed:
            folding.run(folding, data, walk)
        return
    ndx_fill(room, count * kept * itemsize, <char *>folding.identity, itemsize)
    rows.folding = folding
    rows.data = parts
    rows.walk = &cut
    rows.grid.ndim = walk.ndim
    rows.grid.total = 1
    for axis in range(walk.ndim):
        rows.grid.shape[axis] = rows.grid.tile[axis] = walk.shape[axis]
        if axis == chosen:
            rows.grid.tile[axis] = (walk.shape[axis] + count - 1) // count
        rows.grid.counts[axis] = \
            (walk.shape[axis] + rows.grid.tile[axis] - 1) // rows.grid.tile[axis]
        rows.grid.total *= rows.grid.counts[axis]
        if walk.strides[0][axis] != 0:
            together.shape[together.ndim] = walk.shape[axis]
            together.strides[0][together.ndim] = walk.strides[0][axis]
            together.strides[1][together.ndim] = cut.strides[0][axis]
            together.ndim += 1
    for axis in range(walk.nops):
        parts[axis] = data[axis]
    parts[0] = room
    rows.step = kept * itemsize
    parallel_for(rows.grid.total, fold_rows, &rows)
    if folding.may_overflow and any_infinite(
            folding, room, rows.grid.total * rows.step):
        free(room)
        folding.run(folding, data, walk)
        return
    together.shape[0] = rows.grid.total
    together.strides[0][0] = 0
    together.strides[1][0] = kept * itemsize
    walk_merge(&together)
    run_reduce(folding.loop, data[0], room, &together)
    free(room)

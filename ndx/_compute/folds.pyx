"""Reductions as jobs: how they are cut, and how partial results are combined.

How an array is cut depends on its layout, never on the number of threads, and partial
results are combined in a fixed order. So the result is the same for any number.

- Several rows of the result are computed each for itself, as without threads.
- One contiguous stretch is cut where pairwise summation cuts it, so that the sum is
  NumPy's, to the last bit.
- Else the outermost reduced axis is cut, and each part has a row of partial results.
- In files a pass cuts any axes; each tile along the reduced ones has such a row.

Products of floats are not cut along reduced axes. A part of which the product is too
large is infinite, and infinity times another part's zero is not a number, where NumPy
has zero.

Sums of floats are cut, but computed once more in order if a part is infinite: the sum
of the rest may be of the other sign, so that NumPy's is finite.
"""

from libc.math cimport isinf
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_held, hold, let_go, put, put_same
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.costs cimport costs
from ndx._compute.executor cimport job_time, pays_alone
from ndx._compute.loops cimport Ufunc, run_gathered, run_reduce
from ndx._compute.passes.run cimport Pass, begin, go_through
from ndx._compute.threads cimport parallel_for
from ndx._compute.tiles cimport (
    Grid, Job, begin_job, compute_tile, count_tiles, walk_size,
)
from ndx._lib.dtypes cimport KIND_FLOAT, UINT8, kind_of
from ndx._lib.layout cimport MAXOPS, Walk, walk_merge

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)
    bint ndx_flag_is_up(int *flag)

cdef extern from "ndx/internal/fill.h" nogil:
    void ndx_fill(char *dst, size_t nbytes, const char *item, size_t itemsize) noexcept

cdef enum:
    PART = 128 << 10             # bytes of a part, or somewhat more
    SHORT = 8                    # elements of a row
    NARROW = 17                  # elements of a row, if their order does not matter
    LONG = 16                    # rows
    STRIP = 1024                 # fewest elements of a part's contiguous stretch
    LINE = 64                    # elements: whole cache lines of any dtype
    ENOUGH = 16                  # parts
    LEAVES = 1024                # the most parts of a contiguous stretch, a power of 2
    ROWS = 32                    # the most rows of partial results
    LEAST = 64                   # fewest elements of a tile of a file that are combined


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
    elif folding.begun:
        few = 0
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


cdef int run_fold(Folding *folding, Operands *operands, const Walk *walk,
                  const Py_ssize_t *itemsizes, str name) except -1:
    """Accumulate into operand 0 what `Folding.run` reads from the others.

    The walk is in the order of the memory of operand 1.
    """
    cdef Job job
    cdef Pass now
    cdef int op
    begin_job(&job, operands, walk, folding.run, folding)
    for op in range(walk.nops):
        job.itemsizes[op] = itemsizes[op]
    # The old values of the result are combined with the elements.
    job.written = job.read = 1
    job.independent = True
    job.least = LEAST
    job.time = job_time(&job)
    folding.failed = folding.decided = False
    hold(operands)
    try:
        if begin(&now, &job):
            fold_in_pass(folding, &job, &now, name)
        else:
            compute_held(operands, walk, fold_parts, &job)
    finally:
        let_go(operands)
    if folding.failed:
        raise MemoryError("no memory for the partial results of a reduction")
    return 0


cdef void fold_parts(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute a reduction in memory, in parts if that pays."""
    cdef Job *job = <Job *>arg
    cdef Folding *folding = <Folding *>job.arg
    job.data = data
    if walk.ndim == 0 or job.time < costs.cut:
        folding.run(folding, data, walk)
    elif walk.ndim == 1 and walk.strides[0][0] == 0 and not folding.in_order:
        fold_stretch(folding, job)
    elif cut_kept(&job.grid, walk, job.itemsizes[1]):
        parallel_for(job.grid.total, pays_alone(job.time), compute_tile, job)
    elif folding.in_order:
        folding.run(folding, data, walk)
    else:
        fold_partially(folding, job)


# ------------------------------------------------------------- rows of the result

cdef bint cut_kept(Grid *grid, const Walk *walk, Py_ssize_t itemsize) noexcept nogil:
    """Cut the axes that the result keeps; return whether that gives enough parts."""
    cdef Py_ssize_t nbytes = walk_size(walk) * itemsize, count
    cdef int axis, last = walk.ndim - 1
    grid.ndim = walk.ndim
    for axis in range(walk.ndim):
        grid.shape[axis] = grid.tile[axis] = walk.shape[axis]
        if walk.strides[0][axis] == 0 or nbytes <= PART:
            continue
        # From the outermost axis on, as many parts as are needed.
        count = min(walk.shape[axis], (nbytes + PART - 1) // PART)
        grid.tile[axis] = (walk.shape[axis] + count - 1) // count
        if axis == last:
            grid.tile[axis] = max(STRIP, grid.tile[axis])
            grid.tile[axis] += -grid.tile[axis] & (LINE - 1)
        nbytes //= (walk.shape[axis] + grid.tile[axis] - 1) // grid.tile[axis]
    count_tiles(grid)
    return grid.total >= ENOUGH or (grid.total > 1 and nbytes <= PART)


# ---------------------------------------------------------------- one stretch

cdef void fold_stretch(Folding *folding, Job *job) noexcept nogil:
    """Cut a stretch of elements with one stride as NumPy's pairwise sum does."""
    cdef char[16 * LEAVES] results
    cdef char *data[MAXOPS]
    cdef Py_ssize_t itemsize = folding.itemsize, width, i
    cdef Py_ssize_t length = job.walk.shape[0]
    cdef char **whole = job.data
    cdef Grid *grid = &job.grid
    grid.ndim = 1
    # One part, unless it is halved.
    grid.shape[0] = grid.tile[0] = length
    count_tiles(grid)
    grid.two_parts = folding.two_parts
    grid.steps[0] = itemsize
    while (2 << grid.halvings) <= LEAVES \
            and (length >> (grid.halvings + 1)) * job.itemsizes[1] >= PART:
        grid.halvings += 1
    if grid.halvings:
        grid.tile[0] = 1
    width = grid.total = grid.counts[0] = 1 << grid.halvings
    ndx_fill(results, width * itemsize, <char *>folding.identity, itemsize)
    for i in range(job.operands.count):
        data[i] = whole[i]
    data[0] = results
    job.data = data
    if folding.decides:
        # The first leaf often decides; then no thread is woken.
        job.kernel = fold_undecided
        compute_tile(job, 0)
    if not folding.decided:
        parallel_for(width, pays_alone(job.time), compute_tile, job)
    while width > 1:
        width //= 2
        for i in range(width):
            combine(folding, results + 2 * i * itemsize,
                    results + (2 * i + 1) * itemsize, results + i * itemsize)
    combine(folding, whole[0], results, whole[0])


cdef void fold_undecided(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate a leaf, unless another has decided the result."""
    cdef Folding *folding = <Folding *>arg
    if ndx_flag_is_up(&folding.decided):
        return
    folding.run(folding, data, walk)
    if data[0][0] != (<const char *>folding.identity)[0]:
        ndx_raise_flag(&folding.decided)


cdef void combine(const Folding *folding, char *a, char *b,
                  char *result) noexcept nogil:
    """Set the result of two others, one of which may lie at the same place."""
    cdef char[16] found
    cdef char *args[3]
    cdef Py_ssize_t count = 1
    cdef Py_ssize_t[3] steps = [folding.itemsize, folding.itemsize, folding.itemsize]
    args[0] = a
    args[1] = b
    args[2] = found
    folding.loop.function(args, &count, steps, folding.loop.data)
    memcpy(result, found, folding.itemsize)


# ------------------------------------------------------------- partial results

# Partial results of a job: a row of the result for each tile along the reduced axes.
cdef struct Partials:
    Folding *folding
    Walk each                        # the job's walk, over the rows
    Walk together                    # over the result and the rows
    Py_ssize_t nbytes
    bint overflow


cdef void lay_out(Partials *partials, Job *job) noexcept nogil:
    """Let a job, whose walk is cut, write to partial results instead of operand 0."""
    cdef Walk *each = &partials.each
    cdef Walk *together = &partials.together
    cdef const Walk *walk = job.walk
    cdef Py_ssize_t itemsize = partials.folding.itemsize, step = itemsize, rows = 1
    cdef int axis
    memcpy(each, walk, sizeof(Walk))
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] != 0:
            each.strides[0][axis] = step
            step *= walk.shape[axis]
    # The rows are added one by one, in the order of the tiles.
    together.ndim = 1
    together.nops = 2
    together.strides[0][0] = 0
    together.strides[1][0] = step
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] == 0:
            job.grid.steps[axis] = step * rows
            rows *= job.grid.counts[axis]
    for axis in range(walk.ndim):
        if walk.strides[0][axis] != 0:
            together.shape[together.ndim] = walk.shape[axis]
            together.strides[0][together.ndim] = walk.strides[0][axis]
            together.strides[1][together.ndim] = each.strides[0][axis]
            together.ndim += 1
    together.shape[0] = rows
    partials.nbytes = rows * step
    walk_merge(together)
    job.walk = each


cdef void start_rows(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Partials *partials = <Partials *>arg
    ndx_fill(data[0], partials.nbytes, <char *>partials.folding.identity,
             partials.folding.itemsize)


cdef void add_rows(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate the rows, operand 0, into the result, the last operand."""
    cdef Partials *partials = <Partials *>arg
    cdef const Folding *folding = partials.folding
    partials.overflow = folding.may_overflow and any_infinite(
        folding, data[0], partials.nbytes)
    if not partials.overflow:
        run_reduce(folding.loop, data[walk.nops], data[0], &partials.together)


cdef void fold_partially(Folding *folding, Job *job) noexcept nogil:
    """Cut the outermost reduced axis, and combine the rows of partial results."""
    cdef Partials partials
    cdef const Walk *walk = job.walk
    cdef char **whole = job.data
    cdef char *data[MAXOPS + 1]
    cdef char *room = NULL
    cdef Py_ssize_t count = 1, length = 1
    cdef int axis, chosen = 0
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] == 0:
            chosen = axis
            length = walk.shape[axis]
    count = min(length, ROWS, walk_size(walk) * job.itemsizes[1] // (2 * PART))
    if count > 1:
        job.grid.ndim = walk.ndim
        for axis in range(walk.ndim):
            job.grid.shape[axis] = job.grid.tile[axis] = walk.shape[axis]
        job.grid.tile[chosen] = (length + count - 1) // count
        count_tiles(&job.grid)
        partials.folding = folding
        lay_out(&partials, job)
        room = <char *>malloc(partials.nbytes)
        folding.failed = room == NULL
    if room == NULL:
        if not folding.failed:
            folding.run(folding, whole, walk)
        return
    for axis in range(job.operands.count):
        data[axis] = whole[axis]
    data[0] = room
    data[walk.nops] = whole[0]
    start_rows(&partials, data, NULL)
    job.data = data
    parallel_for(job.grid.total, pays_alone(job.time), compute_tile, job)
    add_rows(&partials, data, walk)
    free(room)
    if partials.overflow:
        folding.run(folding, whole, walk)


cdef int fold_in_pass(Folding *folding, Job *job, Pass *now, str name) except -1:
    """Compute a reduction in a pass that has begun.

    What has to be in order is reduced by one thread, if reduced axes are cut.
    """
    cdef Partials partials
    cdef Operands operands
    cdef Operands *given = job.operands
    cdef const Walk *walk = job.walk
    cdef BaseArray rows
    cdef int axis
    cdef bint cut = False
    for axis in range(walk.ndim):
        cut = cut or walk.strides[0][axis] == 0 and job.grid.counts[axis] > 1
    job.in_order = cut and folding.in_order
    if not cut or folding.in_order:
        return go_through(now, name)
    partials.folding = folding
    lay_out(&partials, job)
    rows = new_empty(UINT8, 1, &partials.nbytes)
    operands.count = 0
    put(&operands, rows)
    for axis in range(1, walk.nops):
        put_same(&operands, given, axis)
    put_same(&operands, given, 0)
    hold(&operands)
    try:
        compute_held(&operands, walk, start_rows, &partials)
        job.operands = &operands
        job.data = operands.data
        now.ops[0].data = operands.data[0]
        now.ops[0].mapped = False
        go_through(now, name)
        compute_held(&operands, walk, add_rows, &partials)
    finally:
        let_go(&operands)
    if partials.overflow:
        job.operands = given
        job.walk = walk
        job.grid.total = 0
        begin(now, job)
        job.in_order = True
        go_through(now, name)
    return 0

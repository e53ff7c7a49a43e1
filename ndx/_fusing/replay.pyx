"""The replay of a recorded function: block by block, in cache, over inner loops.

A `Program` is made by `_fusing.lowering`. It never changes, so that threads share it.
A call allocates the results and temporaries, checks and pins all arrays, and runs the
stages, one after the other (`_fusing.replay`). No Python runs meanwhile.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memmove

from ndx._array.pinning cimport (
    Operands, compute_on, hold, let_go, locate, put, put_constant, recheck_all,
    unlocked,
)
from ndx._array.storage cimport (
    BaseArray, as_number, new_array, new_view, require_live, set_layout, strided,
)
from ndx._blocks.block cimport block_is_live
from ndx._compute.copies cimport Cast, Transfer, cast_between, transfer_block
from ndx._compute.costs cimport LARGE, costs
from ndx._compute.executor cimport pays_alone, run as run_job
from ndx._compute.loops cimport Loop, find_ufunc, loop_of
from ndx._compute.passes.settings cimport settings
from ndx._compute.threads cimport parallel_for
from ndx._compute.tiles cimport Job, PLACES, begin_job, cut_rows, element_bytes
from ndx._files.mapping cimport Mapped, find_mapping
from ndx._lib.dtypes cimport KIND_FLOAT, itemsize_of, kind_of, store_scalar
from ndx._lib.free_threading cimport NDX_FREE_THREADED
from ndx._lib.layout cimport MAXOPS, Strided, Walk, byte_bounds
from ndx._lib.numpy_private cimport LoopFunction, may_report, reports

__all__ = ["Program", "limits"]


cdef extern from "ndx/internal/choose.h" nogil:
    void ndx_choose(char **args, const Py_ssize_t *steps, Py_ssize_t n, size_t itemsize)


# ---- Kernels of a stage --------------------------------------------------------------
# They have the signature of NumPy's inner loops. Steps may be any number of bytes, also
# 0 for one value that is repeated. Inputs and output are the same elements, or
# disjoint.

cdef void run_cast(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Convert elements; `data` is `_compute.copies.cast_between` of two dtypes."""
    (<Cast>data)(args[1], steps[1], args[0], steps[0], counts[0])


cdef void run_copy(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                   void *data) noexcept nogil:
    """Copy elements; `data` is the item size."""
    cdef Transfer how
    how.cast = NULL
    how.itemsize = <Py_ssize_t>data
    if steps[0] == how.itemsize and steps[1] == how.itemsize:
        memmove(args[1], args[0], counts[0] * how.itemsize)
    else:
        transfer_block(&how, args[1], 0, steps[1], args[0], 0, steps[0], 1, counts[0])


cdef void run_sum(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                  void *data) noexcept nogil:
    """Add elements to a total, or to several; `data` is the `Loop`, which has sums."""
    cdef const Loop *loop = <const Loop *>data
    if steps[0] == 0 and steps[1] == itemsize_of[loop.in_dtype]:
        loop.sum(args[0], args[1], counts[0])
    else:
        loop.function(args, counts, steps, loop.data)


cdef void run_select(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil:
    """Choose between two operands by bools, the first one; `data` is the item size."""
    ndx_choose(args, steps, counts[0], <size_t>data)


# ---- Blocks --------------------------------------------------------------------------
# A block is a few rows of the innermost axis, or a part of one. Its steps are calls of
# inner loops, whose intermediate values are in registers: pieces of a thread's scratch.

cdef enum:
    LINE = 64                    # bytes
    NARROW = 17                  # elements: rows of fewer are reduced side by side
    ROW_BYTES = 8 << 10          # of the sums of a few rows

cdef struct Share:
    const Stage *stage
    const Replay *replay


cdef void run_blocks(void *arg, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Compute the blocks [first, last) of a stage, with a scratch buffer of their own.

    The buffer is not on the stack, of which a thread may have little, unless there is
    no other memory.
    """
    cdef Py_ssize_t scratch = (<const Share *>arg).stage.scratch
    cdef void *room = NULL
    if scratch == 0:
        run_blocks_in(<const Share *>arg, first, last, NULL)
        return
    room = malloc(scratch + LINE)
    if room == NULL:
        run_blocks_on_stack(<const Share *>arg, first, last)
        return
    run_blocks_in(<const Share *>arg, first, last, <char *>room)
    free(room)


cdef void run_blocks_on_stack(const Share *share, Py_ssize_t first,
                              Py_ssize_t last) noexcept nogil:
    cdef char[SCRATCH + LINE] room
    run_blocks_in(share, first, last, room)


cdef void run_blocks_in(const Share *share, Py_ssize_t first, Py_ssize_t last,
                        char *room) noexcept nogil:
    cdef const Stage *stage = share.stage
    # Vectors that lie across two cache lines take twice as long.
    cdef char *scratch = room + (-<uintptr_t>room & (LINE - 1))
    cdef char *rows[MAX_LEAVES][MOST_ROWS]
    cdef char *start[MAX_LEAVES]
    cdef const Leaf *leaf
    cdef const Partial *partial
    cdef Py_ssize_t block, row, col, nrows, ncols
    cdef int i
    for block in range(first, last):
        row = block // stage.col_blocks
        col = block % stage.col_blocks * stage.block_cols
        nrows = row % stage.plane_blocks * stage.block_rows
        row = row // stage.plane_blocks * stage.plane + nrows
        nrows = min(stage.block_rows, stage.plane - nrows)
        ncols = min(stage.block_cols, stage.cols - col)
        for i in range(stage.npartials):
            partial = &stage.partials[i]
            memcpy(share.replay.data[partial.slot] + block * partial.itemsize,
                   share.replay.constants[partial.constant], partial.itemsize)
        for i in range(stage.nleaves):
            leaf = &stage.leaves[i]
            start[i] = share.replay.data[leaf.slot] + leaf.offset + col * leaf.inner
            if stage.ndim == 1:
                start[i] += row * leaf.outer[0]
        if stage.ndim > 1:
            find_rows(stage, row, nrows, start, rows)
        for i in range(stage.nsteps):
            run_step(&stage.steps[i], share, block, nrows, ncols, scratch, start, rows)


cdef void find_rows(const Stage *stage, Py_ssize_t row, Py_ssize_t nrows, char **start,
                    char *(*rows)[MOST_ROWS]) noexcept nogil:
    """Set the address of each row of a block, in each leaf; `start` is row 0 of all."""
    cdef Py_ssize_t index[MAX_AXES]
    cdef char *at
    cdef const Leaf *leaf
    cdef Py_ssize_t rest = row, r, offset
    cdef int axis, i
    for axis in range(stage.ndim - 1, -1, -1):
        index[axis] = rest % stage.shape[axis]
        rest //= stage.shape[axis]
    for i in range(stage.nleaves):
        leaf = &stage.leaves[i]
        offset = 0
        for axis in range(stage.ndim):
            offset += index[axis] * leaf.outer[axis]
        start[i] += offset
        rows[i][0] = start[i]
    for r in range(1, nrows):
        axis = stage.ndim - 1
        index[axis] += 1
        if index[axis] < stage.shape[axis]:
            for i in range(stage.nleaves):
                rows[i][r] = rows[i][r - 1] + stage.leaves[i].outer[axis]
            continue
        for i in range(stage.nleaves):
            at = rows[i][r - 1] - (index[axis] - 1) * stage.leaves[i].outer[axis]
            rows[i][r] = at
        index[axis] = 0
        while True:
            axis -= 1
            index[axis] += 1
            for i in range(stage.nleaves):
                rows[i][r] += stage.leaves[i].outer[axis]
            if index[axis] < stage.shape[axis]:
                break
            for i in range(stage.nleaves):
                rows[i][r] -= index[axis] * stage.leaves[i].outer[axis]
            index[axis] = 0


cdef inline void run_step(const Step *step, const Share *share, Py_ssize_t block,
                          Py_ssize_t nrows, Py_ssize_t ncols, char *scratch,
                          char **start, char *(*rows)[MOST_ROWS]) noexcept nogil:
    cdef const Stage *stage = share.stage
    cdef const Operand *operand
    cdef const Partial *partial
    cdef char *args[NDX_CHAIN_OPERANDS]
    cdef char *at[NDX_CHAIN_OPERANDS]
    cdef Py_ssize_t steps[NDX_CHAIN_OPERANDS]
    cdef Py_ssize_t between[NDX_CHAIN_OPERANDS]
    cdef Py_ssize_t width = stage.pitch if stage.pitch else ncols
    cdef Py_ssize_t count, row, col
    cdef Transfer how
    cdef int i
    for i in range(step.count):
        operand = &step.operands[i]
        if operand.place == REGISTER:
            at[i] = scratch + operand.index * stage.register_bytes
            steps[i] = operand.itemsize
            between[i] = width * operand.itemsize
        elif operand.place == LEAF:
            at[i] = start[operand.index]
            steps[i] = stage.leaves[operand.index].inner
            between[i] = stage.leaves[operand.index].outer[0]
        elif operand.place == CONSTANT:
            at[i] = <char *>share.replay.constants[operand.index]
            steps[i] = between[i] = 0
        else:
            partial = &stage.partials[operand.index]
            at[i] = share.replay.data[partial.slot] + block * partial.itemsize
            steps[i] = between[i] = 0
    if not step.rows or nrows == 1:
        count = (nrows - 1) * width + ncols
        step.function(at, &count, steps, step.data)
        return
    if step.reduces and stage.ndim == 1 and ncols < NARROW <= nrows:
        # All first elements, all second ones, and so on.
        for col in range(ncols):
            args[0] = args[2] = at[0] + col * steps[0]
            args[1] = at[1] + col * steps[1]
            count = nrows
            step.function(args, &count, between, step.data)
        return
    row = 0
    if step.function == run_copy and ncols < SHORT_ROW:
        how.cast = NULL
        # Of what is written: a constant has no item size.
        how.itemsize = step.operands[1].itemsize
        while row < nrows:
            args[0] = row_of(step, stage, 0, row, at, between, rows)
            args[1] = row_of(step, stage, 1, row, at, between, rows)
            count = rows_in_line(step, stage, row, nrows, at, between, rows)
            transfer_block(&how, args[1], between[1], steps[1], args[0], between[0],
                           steps[0], count, ncols)
            row += count
        return
    while row < nrows:
        if step.sums and steps[0] != 0:
            count = add_rows(step, stage, row, nrows, ncols, at, steps, between, rows)
            if count:
                row += count
                continue
        # Copies: some loops change the pointers and the count.
        count = ncols
        for i in range(step.count):
            args[i] = row_of(step, stage, i, row, at, between, rows)
        step.function(args, &count, steps, step.data)
        row += 1


cdef inline char *row_of(const Step *step, const Stage *stage, int i, Py_ssize_t row,
                         char **at, const Py_ssize_t *between,
                         char *(*rows)[MOST_ROWS]) noexcept nogil:
    """Return the address of an operand's row in the block."""
    if stage.ndim > 1 and step.operands[i].place == LEAF:
        return rows[step.operands[i].index][row]
    return at[i] + row * between[i]


cdef Py_ssize_t rows_in_line(const Step *step, const Stage *stage, Py_ssize_t row,
                             Py_ssize_t nrows, char **at, Py_ssize_t *between,
                             char *(*rows)[MOST_ROWS]) noexcept nogil:
    """Return how many rows from `row` lie at one distance, in both operands of a copy.

    `between` are the distances then.
    """
    cdef Py_ssize_t last = row + 1
    cdef char *before
    cdef char *next
    cdef int i
    if stage.ndim == 1 or last == nrows:
        return nrows - row
    for i in range(2):
        between[i] = row_of(step, stage, i, last, at, between, rows) \
            - row_of(step, stage, i, row, at, between, rows)
    while last < nrows:
        for i in range(2):
            before = row_of(step, stage, i, last - 1, at, between, rows)
            next = row_of(step, stage, i, last, at, between, rows)
            if next - before != between[i]:
                return last - row
        last += 1
    return nrows - row


cdef Py_ssize_t add_rows(const Step *step, const Stage *stage, Py_ssize_t row,
                         Py_ssize_t nrows, Py_ssize_t ncols, char **at,
                         const Py_ssize_t *steps, const Py_ssize_t *between,
                         char *(*rows)[MOST_ROWS]) noexcept nogil:
    """Add the rows of one target to each other, and then their sums to the target.

    So fewer sums are rounded one after the other. Returns how many rows were added; 0:
    there are too few of them.
    """
    cdef char[ROW_BYTES] total
    cdef char *target = row_of(step, stage, 0, row, at, between, rows)
    cdef char *args[3]
    cdef Py_ssize_t inner[3]
    cdef Py_ssize_t itemsize = step.operands[0].itemsize
    cdef Py_ssize_t count, i, last = row + 1
    cdef Transfer how
    while last < nrows and row_of(step, stage, 0, last, at, between, rows) == target:
        last += 1
    if last - row < 3 or ncols * itemsize > ROW_BYTES:
        return 0
    how.cast = NULL
    how.itemsize = itemsize
    args[1] = row_of(step, stage, 1, row, at, between, rows)
    transfer_block(&how, total, 0, itemsize, args[1], 0, steps[1], 1, ncols)
    inner[0], inner[1], inner[2] = itemsize, steps[1], itemsize
    for i in range(row + 1, last):
        args[0] = args[2] = total
        args[1] = row_of(step, stage, 1, i, at, between, rows)
        count = ncols
        step.function(args, &count, inner, step.data)
    args[0] = args[2] = target
    args[1] = total
    inner[0], inner[1], inner[2] = steps[0], itemsize, steps[0]
    count = ncols
    step.function(args, &count, inner, step.data)
    return last - row


cdef void run_share(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Share *share = <const Share *>arg
    cdef Py_ssize_t blocks = share.stage.row_blocks * share.stage.col_blocks
    cdef Py_ssize_t most = share.stage.share
    run_blocks(arg, index * most, min((index + 1) * most, blocks))


cdef void run_stages(void *arg) noexcept nogil:
    """Run all stages in order; threads share the blocks of each."""
    cdef const Replay *replay = <const Replay *>arg
    cdef const Partial *partial
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t blocks
    cdef Share share
    cdef int i, k
    share.replay = replay
    for i in range(replay.nstages):
        share.stage = &replay.stages[i]
        blocks = share.stage.row_blocks * share.stage.col_blocks
        if share.stage.work >= replay.least and not share.stage.serial:
            parallel_for((blocks - 1) // share.stage.share + 1, False, run_share,
                         &share)
        else:
            run_blocks(&share, 0, blocks)
        for k in range(share.stage.npartials):
            partial = &share.stage.partials[k]
            args[0] = args[2] = replay.data[partial.target]
            args[1] = replay.data[partial.slot]
            steps[0] = steps[2] = 0
            steps[1] = partial.itemsize
            partial.function(args, &blocks, steps, partial.data)
            blocks = share.stage.row_blocks * share.stage.col_blocks


# ---- Arrays in large files -----------------------------------------------------------
# A stage is a job, whose tiles are whole blocks. They are those of a stage in memory,
# and so are the results, to the last bit.

cdef enum:
    TILE = 8 << 20               # bytes that a thread takes at a time


# What computes tiles of a stage.
cdef struct Streamed:
    const Stage *stage
    const Replay *replay


cdef bint streams(const Stage *stage) noexcept:
    """Whether a stage can be computed as a job.

    Its blocks are numbered by their rows, and its leaves are operands of one walk.
    """
    return stage.ndim <= 1 and stage.pitch == 0 and stage.plane == stage.rows \
        and 1 + stage.nleaves + stage.npartials <= MAXOPS


cdef void run_tile(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute the blocks of a tile; operand 0 is the place of its first element."""
    cdef const Streamed *streamed = <const Streamed *>arg
    cdef const Stage *whole = streamed.stage
    cdef Stage stage = whole[0]
    cdef Replay replay = streamed.replay[0]
    cdef Leaf[MAX_LEAVES] leaves
    cdef Partial[MAXOPS] partials
    cdef Py_ssize_t place = data[0] - <char *>PLACES, first
    cdef Share share
    cdef int last = walk.ndim - 1, i
    stage.rows = stage.plane = walk.shape[0] if last else 1
    stage.shape[0] = stage.rows
    stage.cols = walk.shape[last]
    stage.plane_blocks = stage.row_blocks = (stage.rows - 1) // stage.block_rows + 1
    stage.col_blocks = (stage.cols - 1) // stage.block_cols + 1
    first = place // whole.cols // stage.block_rows * whole.col_blocks \
        + place % whole.cols // stage.block_cols
    stage.leaves = leaves
    for i in range(stage.nleaves):
        leaves[i].slot = i
        leaves[i].offset = 0
        leaves[i].inner = walk.strides[1 + i][last]
        leaves[i].outer[0] = walk.strides[1 + i][0]
        leaves[i].together = is_flat(&stage, &leaves[i])
        replay.data[i] = data[1 + i]
    stage.partials = partials
    for i in range(stage.npartials):
        partials[i] = whole.partials[i]
        partials[i].slot = stage.nleaves + i
        replay.data[stage.nleaves + i] = data[1 + stage.nleaves + i] \
            + first * partials[i].itemsize
    share.stage = &stage
    share.replay = &replay
    run_blocks(&share, 0, stage.row_blocks * stage.col_blocks)


cdef void run_partials(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Add the partial results of all blocks, operand 1, to operand 0."""
    cdef const Partial *partial = <const Partial *>arg
    cdef char *args[3]
    cdef Py_ssize_t[3] steps = [0, partial.itemsize, 0]
    cdef Py_ssize_t count = walk.shape[0]
    args[0] = args[2] = data[0]
    args[1] = data[1]
    partial.function(args, &count, steps, partial.data)


cdef BaseArray operand_of(const Stage *stage, const Leaf *leaf, BaseArray x):
    """Return a view of a leaf's elements: rows, if there are several, and columns."""
    cdef BaseArray view = new_view(x, stage.ndim + 1)
    view.offset += leaf.offset
    if stage.ndim:
        view.shape[0] = stage.rows
        view.strides[0] = leaf.outer[0]
    view.shape[stage.ndim] = stage.cols
    view.strides[stage.ndim] = leaf.inner
    set_layout(view)
    return view


cdef void find_written(const Stage *stage, Job *job) noexcept:
    """Set which leaves are written, and which of these are read before."""
    cdef const Step *step
    cdef unsigned int bit
    cdef int i, k
    job.written = 0
    for i in range(stage.nsteps):
        step = &stage.steps[i]
        for k in range(step.count):
            if step.operands[k].place != LEAF:
                continue
            bit = <unsigned int>2 << step.operands[k].index
            if k < step.count - 1 and not job.written & bit:
                job.read |= bit
            elif k == step.count - 1:
                job.written |= bit


cdef int run_streamed(const Stage *stage, Replay *replay, list arrays) except -1:
    """Compute a stage on arrays, of which some are in large files.

    `arrays` has an array for each slot.
    """
    cdef Streamed streamed = Streamed(stage, replay)
    cdef list views = [
        operand_of(stage, &stage.leaves[i], arrays[stage.leaves[i].slot])
        for i in range(stage.nleaves)]
    cdef BaseArray view
    cdef Operands operands
    cdef Walk walk
    cdef Job job
    cdef Py_ssize_t elements, block = stage.block_rows * stage.block_cols, blocks
    cdef int i, axis
    operands.count = 0
    put_constant(&operands, <char *>PLACES)
    walk.ndim = stage.ndim + 1
    walk.nops = 1 + stage.nleaves
    for axis in range(walk.ndim):
        walk.shape[axis] = stage.cols if axis == stage.ndim else stage.rows
        walk.strides[0][axis] = 1 if axis == stage.ndim else stage.cols
    for i in range(stage.nleaves):
        view = <BaseArray>views[i]
        put(&operands, view)
        for axis in range(walk.ndim):
            walk.strides[1 + i][axis] = view.strides[axis]
    for i in range(stage.npartials):
        put(&operands, <BaseArray>arrays[stage.partials[i].slot])
    begin_job(&job, &operands, &walk, run_tile, &streamed)
    job.itemsizes[0] = 0
    for i in range(stage.nleaves):
        job.itemsizes[1 + i] = itemsize_of[(<BaseArray>views[i]).dtype]
    find_written(stage, &job)
    job.keeps_axes = job.by_rows = job.independent = True
    job.together = block
    # Sums of rows are added to by their blocks, one after the other.
    job.in_order = stage.serial
    for i in range(stage.nleaves):
        job.in_order |= job.written >> (1 + i) & 1 and stage.leaves[i].inner == 0 \
            and stage.cols > stage.block_cols
    elements = min(<Py_ssize_t>TILE, settings().block) \
        // max(1, element_bytes(&walk, job.itemsizes))
    cut_rows(&job.grid, &walk, max(block, elements - elements % block))
    run_job(&job, "fuse")
    blocks = stage.row_blocks * stage.col_blocks
    walk.shape[0] = blocks
    for i in range(stage.npartials):
        operands.count = 0
        put(&operands, <BaseArray>arrays[stage.partials[i].target])
        put(&operands, <BaseArray>arrays[stage.partials[i].slot])
        compute_on(&operands, &walk, run_partials, <void *>&stage.partials[i], False)
    return 0


# ---- The replay ----------------------------------------------------------------------

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    PyObject *PyList_GET_ITEM(object items, Py_ssize_t i) noexcept

cdef enum:
    CHUNKS = (MAX_SLOTS + 5) // 6


def limits():
    """Return the limits of a program, by name, for `_fusing.lowering`."""
    return {
        "slots": MAX_SLOTS, "axes": MAX_AXES, "constants": MAX_CONSTANTS,
        "parameters": MAX_PARAMETERS, "scratch": SCRATCH, "rows": MOST_ROWS,
        "leaves": MAX_LEAVES, "short_row": SHORT_ROW, "operands": NDX_CHAIN_OPERANDS,
        "chain": NDX_CHAIN_STEPS, "tiles": NDX_CHAIN_TILES, "tile": NDX_CHAIN_FEWEST,
    }


def chain_codes():
    """Return the codes of a chain's steps, by name; none where there are no chains."""
    cdef dict found = {}
    while ndx_chain_names[len(found)] != NULL:
        found[ndx_chain_names[len(found)].decode().lower()] = len(found)
    return found


assert CHUNKS * MAXOPS >= MAX_SLOTS


cdef class Program:
    """A recorded function as C data; see `_fusing.lowering.plan`, which describes it.

    Parameters
    ----------
    nargs : int
        Arrays among the arguments.
    used, stored : list of int
        Those whose elements are read or written, and those that are written.
    made : list of (dtype, shape, order)
        Arrays to allocate; their slots follow the arguments'.
    constants : list of bytes
    parameters : list of (constant, position, dtype)
        Constants that are scalars among the arguments.
    stages : list of dict
    result : object
        What is returned; see `_fusing.lowering`.
    about : object
        For `explain`.
    """

    def __cinit__(self, int nargs, list used, list stored, list made, list constants,
                  list parameters, list stages, result, about):
        cdef int i, axis
        within("slots", nargs + len(made), MAX_SLOTS)
        within("constants", len(constants), MAX_CONSTANTS)
        within("parameters", len(parameters), MAX_PARAMETERS)
        self.nargs = nargs
        self.nslots = nargs + len(made)
        self.nconstants = len(constants)
        self.nparameters = len(parameters)
        self.about = about
        self.result = result
        self.result_slot = result[1] if result[0] == "slot" else -1
        for i in used:
            self.used |= <unsigned int>1 << i
        for i in stored:
            self.stored |= <unsigned int>1 << i
        for i, (dtype, shape, order) in enumerate(made):
            within("axes", len(shape), MAX_AXES)
            self.made[i].dtype = dtype
            self.made[i].ndim = len(shape)
            for axis in range(self.made[i].ndim):
                self.made[i].shape[axis] = shape[axis]
                self.made[i].order[axis] = order[axis]
        for i, value in enumerate(constants):
            within("bytes of a constant", len(value), sizeof(self.constants[i]))
            memcpy(self.constants[i], <char *><bytes>value, len(value))
        for i, (constant, position, dtype) in enumerate(parameters):
            self.parameters[i].constant = constant
            self.parameters[i].position = position
            self.parameters[i].dtype = dtype
        self.stages = <Stage *>calloc(max(len(stages), 1), sizeof(Stage))
        if self.stages == NULL:
            raise MemoryError()
        for i, stage in enumerate(stages):
            # Counted before the stage is filled: `__dealloc__` frees what a failure
            # leaves.
            self.nstages = i + 1
            self.fill(&self.stages[i], stage)
            self.streamed = (i == 0 or self.streamed) and streams(&self.stages[i])

    def __dealloc__(self):
        cdef int i, k
        if self.stages != NULL:
            for i in range(self.nstages):
                for k in range(self.stages[i].nsteps):
                    free(self.stages[i].steps[k].chain)
                free(self.stages[i].leaves)
                free(self.stages[i].steps)
                free(self.stages[i].partials)
            free(self.stages)

    cdef int fill(self, Stage *stage, dict given) except -1:
        cdef int i, axis, k
        cdef Leaf *leaf
        cdef Step *step
        cdef Partial *partial
        cdef list shape = given["shape"]
        within("axes", len(shape), MAX_AXES)
        within("rows of a block", given["block_rows"], MOST_ROWS)
        within("bytes of registers", given["registers"] * given["register_bytes"],
               SCRATCH)
        within("leaves", len(given["leaves"]), MAX_LEAVES)
        stage.ndim = len(shape)
        stage.rows = 1
        for axis in range(stage.ndim):
            stage.shape[axis] = shape[axis]
            stage.rows *= stage.shape[axis]
        stage.cols = given["cols"]
        stage.block_rows = given["block_rows"]
        stage.block_cols = given["block_cols"]
        stage.plane = given["plane"]
        stage.plane_blocks = (stage.plane - 1) // stage.block_rows + 1
        stage.row_blocks = stage.rows // stage.plane * stage.plane_blocks
        stage.col_blocks = (stage.cols - 1) // stage.block_cols + 1
        stage.register_bytes = given["register_bytes"]
        stage.share = given["share"]
        stage.work = given["work"]
        stage.scratch = given["registers"] * stage.register_bytes
        stage.serial = given["serial"]
        self.large |= stage.rows * stage.cols >= LARGE
        if not stage.serial:
            self.work = max(self.work, stage.work)
        leaves, steps, partials = given["leaves"], given["steps"], given["partials"]
        stage.leaves = <Leaf *>calloc(max(len(leaves), 1), sizeof(Leaf))
        stage.steps = <Step *>calloc(max(len(steps), 1), sizeof(Step))
        stage.partials = <Partial *>calloc(max(len(partials), 1), sizeof(Partial))
        if stage.leaves == NULL or stage.steps == NULL or stage.partials == NULL:
            raise MemoryError()
        stage.pitch = given["pitch"]
        for i, (slot, offset, strides, pitched) in enumerate(leaves):
            leaf = &stage.leaves[i]
            leaf.slot = slot
            leaf.offset = offset
            for axis in range(stage.ndim):
                leaf.outer[axis] = strides[axis]
            leaf.inner = strides[stage.ndim]
            leaf.together = pitched if stage.pitch else is_flat(stage, leaf)
        stage.nleaves = len(leaves)
        for i, (slot, target, constant, name, dtype) in enumerate(partials):
            partial = &stage.partials[i]
            partial.slot = slot
            partial.target = target
            partial.constant = constant
            partial.itemsize = itemsize_of[dtype]
            find_loop(name, dtype, 0, True, &partial.function, &partial.data)
        stage.npartials = len(partials)
        stage.nsteps = len(steps)
        for i, (name, dtype, into, operands, reduces, chain) in enumerate(steps):
            step = &stage.steps[i]
            step.reduces = reduces
            step.sums = reduces and name == "add" and kind_of[dtype] >= KIND_FLOAT
            if chain:
                step.chain = make_chain(dtype, len(operands) - 1, chain)
                step.function = ndx_chain_run
                step.data = step.chain
            else:
                find_loop(name, dtype, into, reduces, &step.function, &step.data)
            step.count = len(operands)
            within("operands", step.count, NDX_CHAIN_OPERANDS)
            for k, (place, index, itemsize) in enumerate(operands):
                step.operands[k].place = place
                step.operands[k].index = index
                step.operands[k].itemsize = itemsize
                step.rows |= place == LEAF and not stage.leaves[index].together
                # The elements between the rows don't count.
                step.rows |= place == PARTIAL and stage.pitch > 0
        return 0

    cdef int hindrance(self, PyObject **arrays) except -1:
        """Return why the arrays of this call can't be replayed; 0: they can."""
        # NumPy reports floating-point errors then; only its functions do that.
        if may_report() and reports():
            return ERRORS
        if not self.streamed and self.large and self.reads_files(arrays):
            # Computed in passes, which read a file from start to end.
            return FILES
        return 0 if are_apart(arrays, self.nargs, self.used, self.stored) else OVERLAP

    cdef bint reads_files(self, PyObject **arrays) except -1:
        """Whether arrays of this call are in files, and large."""
        cdef Strided layout
        cdef BaseArray x
        cdef Mapped mapped
        cdef int i
        for i in range(self.nargs):
            x = <BaseArray>arrays[i]
            if not self.used >> i & 1 or not block_is_live(x.block):
                continue
            strided(x, &layout)
            if x.size * itemsize_of[x.dtype] >= settings().threshold \
                    and find_mapping(layout.data, &mapped):
                return True
        return False

    cdef object run(self, PyObject **arrays, PyObject **scalars):
        """Replay; the caller has asked `hindrance`, and owns the arguments."""
        cdef Operands[CHUNKS] chunks
        cdef int[MAX_SLOTS] slots
        cdef Replay replay
        cdef BaseArray only = None
        cdef list made = None
        cdef PyObject *array
        cdef int i, nchunks = 0, count = 0
        cdef bint live
        for i in range(self.nargs):
            if self.used >> i & 1:
                require_live(<BaseArray>arrays[i])
        replay.stages = self.stages
        replay.nstages = self.nstages
        replay.least = PY_SSIZE_T_MAX
        if self.work >= costs.cut and not pays_alone(self.work):
            replay.least = <Py_ssize_t>costs.cut
        memcpy(replay.constants, self.constants, 16 * self.nconstants)
        for i in range(self.nparameters):
            store_scalar(<object>scalars[self.parameters[i].position],
                         self.parameters[i].dtype,
                         replay.constants[self.parameters[i].constant])
        if self.nslots == self.nargs + 1:
            only = self.make(0)
        else:
            made = [self.make(i) for i in range(self.nslots - self.nargs)]
        chunks[0].count = 0
        for i in range(self.nslots):
            if i >= self.nargs:
                array = <PyObject *>only if only is not None \
                    else PyList_GET_ITEM(made, i - self.nargs)
            elif self.used >> i & 1:
                array = arrays[i]
            else:
                continue
            if chunks[nchunks].count == MAXOPS:
                nchunks += 1
                chunks[nchunks].count = 0
            put(&chunks[nchunks], <BaseArray>array)
            slots[count] = i
            count += 1
        nchunks += 1
        if self.large and self.reads_files(arrays):
            made = [only] if only is not None else made
            operands = [<object>arrays[i] for i in range(self.nargs)] + (made or [])
            for i in range(self.nstages):
                run_streamed(&self.stages[i], &replay, operands)
        elif self.large or replay.least <= self.work or NDX_FREE_THREADED:
            run_held(chunks, nchunks, 0, slots, &replay)
        elif self.nstages:
            live = True
            for i in range(count):
                live = live and block_is_live(
                    (<BaseArray>chunks[i // MAXOPS].arrays[i % MAXOPS]).block)
            if live:
                # Nothing waits here, so that no Python runs until the end.
                for i in range(nchunks):
                    locate(&chunks[i])
                set_data(chunks, nchunks, slots, &replay)
                run_stages(&replay)
                for i in range(nchunks):
                    recheck_all(&chunks[i])
            else:
                run_held(chunks, nchunks, 0, slots, &replay)
        if only is not None:
            if self.result_slot == self.nargs:
                return only
            made = [only]
        return self.build(self.result, arrays, made)

    cdef BaseArray make(self, int i):
        cdef Made *made = &self.made[i]
        return new_array(0, made.dtype, made.ndim, made.shape, made.order, False)

    cdef object build(self, tuple spec, PyObject **arrays, list made):
        """Return the value that the function returned, with this call's arrays."""
        cdef BaseArray base, view
        cdef int slot, axis
        what = spec[0]
        if what == "value":
            return spec[1]
        if what == "tuple":
            return tuple([self.build(item, arrays, made) for item in spec[1]])
        if what == "list":
            return [self.build(item, arrays, made) for item in spec[1]]
        if what == "dict":
            return {key: self.build(item, arrays, made) for key, item in spec[1]}
        if what == "number":
            return as_number(self.build(spec[1], arrays, made))
        slot = spec[1]
        base = <BaseArray>arrays[slot] if slot < self.nargs else made[slot - self.nargs]
        if what == "slot":
            return base
        _, _, offset, shape, strides = spec
        view = new_view(base, len(shape))
        view.offset += <Py_ssize_t>offset
        for axis in range(len(shape)):
            view.shape[axis] = shape[axis]
            view.strides[axis] = strides[axis]
        set_layout(view)
        return view


cdef bint are_apart(PyObject **arrays, int count, unsigned int used,
                    unsigned int stored) except -1:
    """Whether no array that is written shares memory with another one in use."""
    cdef Strided layout
    cdef Py_ssize_t low[MAX_SLOTS]
    cdef Py_ssize_t high[MAX_SLOTS]
    cdef unsigned int seen = 0
    cdef BaseArray x
    cdef int i, k
    if not stored:
        return True
    for i in range(count):
        x = <BaseArray>arrays[i]
        if not used >> i & 1 or not block_is_live(x.block):
            continue
        strided(x, &layout)
        byte_bounds(&layout, itemsize_of[x.dtype], &low[i], &high[i])
        low[i] += <Py_ssize_t><uintptr_t>layout.data
        high[i] += <Py_ssize_t><uintptr_t>layout.data
        for k in range(i):
            if seen >> k & 1 and (stored >> i | stored >> k) & 1 \
                    and low[i] < high[k] and low[k] < high[i]:
                return False
        seen |= <unsigned int>1 << i
    return True


cdef int within(str what, size_t count, size_t most) except -1:
    """Refuse a program that does not fit: its numbers become indices in C."""
    if count > most:
        raise ValueError(f"{count} {what}; a program has at most {most}")
    return 0


cdef bint is_flat(const Stage *stage, const Leaf *leaf) noexcept nogil:
    """Whether the rows of a leaf follow one another like the elements of one."""
    cdef Py_ssize_t step = leaf.inner * stage.cols
    cdef int axis
    for axis in range(stage.ndim - 1, -1, -1):
        if leaf.outer[axis] != step:
            return False
        step *= stage.shape[axis]
    return True


cdef int find_loop(str name, int dtype, int into, bint reduces,
                   LoopFunction *function, void **data) except -1:
    cdef const Loop *loop
    if name == "cast":
        function[0] = run_cast
        data[0] = <void *>cast_between(dtype, into)
    elif name == "copy" or name == "select":
        function[0] = run_copy if name == "copy" else run_select
        data[0] = <void *>itemsize_of[dtype]
    else:
        loop = loop_of(find_ufunc(name), dtype)
        function[0] = loop.function
        data[0] = loop.data
        if reduces and loop.sum != NULL:
            function[0] = run_sum
            data[0] = <void *>loop
    return 0


cdef Chain *make_chain(int dtype, int inputs, tuple given) except NULL:
    """Return a new chain, which the caller frees."""
    cdef Chain *chain
    tiles, steps = given
    within("steps of a chain", len(steps), NDX_CHAIN_STEPS)
    within("tiles of a chain", tiles, NDX_CHAIN_TILES)
    chain = <Chain *>calloc(1, sizeof(Chain))
    if chain == NULL:
        raise MemoryError()
    chain.wide = itemsize_of[dtype] == 8
    chain.inputs = inputs
    chain.tiles = tiles
    chain.nsteps = len(steps)
    for i, (code, first, second) in enumerate(steps):
        assert max(first, second) < tiles
        chain.steps[i].code = code
        chain.steps[i].first = first
        chain.steps[i].second = second
    return chain


cdef void set_data(const Operands *chunks, int nchunks, const int *slots,
                   Replay *replay) noexcept:
    cdef int i, k, count = 0
    for i in range(nchunks):
        for k in range(chunks[i].count):
            replay.data[slots[count]] = chunks[i].data[k]
            count += 1


cdef int run_held(Operands *chunks, int nchunks, int done, const int *slots,
                  Replay *replay) except -1:
    """Hold all arrays, a few at a time, and run without the GIL."""
    if done == nchunks:
        set_data(chunks, nchunks, slots, replay)
        return unlocked(&chunks[0], run_stages, replay)
    hold(&chunks[done])
    try:
        return run_held(chunks, nchunks, done + 1, slots, replay)
    finally:
        let_go(&chunks[done])

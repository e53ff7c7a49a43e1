"""The blocks of a program's stages: what runs without Python, on one thread or on all.

A block is a few rows of the innermost axis, or a part of one. Its steps are calls of
inner loops, whose intermediate values are in registers: pieces of a thread's scratch.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from ndx._compute.threads cimport parallel_for
from ndx._compute.transfers cimport Transfer, transfer_block
from ndx._fusing.kernels cimport run_copy

cdef enum:
    LINE = 64                    # bytes
    NARROW = 17                  # elements: rows of fewer are reduced side by side
    ROW_BYTES = 8 << 10          # of the sums of a few rows

cdef struct Job:
    const Stage *stage
    const Replay *replay


cdef void run_blocks(void *arg, Py_ssize_t first, Py_ssize_t last) noexcept nogil:
    """Compute the blocks [first, last) of a stage, with a scratch buffer of their own.

    The buffer is not on the stack, of which a thread may have little, unless there is
    no other memory.
    """
    cdef void *room = malloc(SCRATCH + LINE)
    if room == NULL:
        run_blocks_on_stack(<const Job *>arg, first, last)
        return
    run_blocks_in(<const Job *>arg, first, last, <char *>room)
    free(room)


cdef void run_blocks_on_stack(const Job *job, Py_ssize_t first,
                              Py_ssize_t last) noexcept nogil:
    cdef char[SCRATCH + LINE] room
    run_blocks_in(job, first, last, room)


cdef void run_blocks_in(const Job *job, Py_ssize_t first, Py_ssize_t last,
                        char *room) noexcept nogil:
    cdef const Stage *stage = job.stage
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
            memcpy(job.replay.data[partial.slot] + block * partial.itemsize,
                   job.replay.constants[partial.constant], partial.itemsize)
        for i in range(stage.nleaves):
            leaf = &stage.leaves[i]
            start[i] = job.replay.data[leaf.slot] + leaf.offset + col * leaf.inner
            if stage.ndim == 1:
                start[i] += row * leaf.outer[0]
        if stage.ndim > 1:
            find_rows(stage, row, nrows, start, rows)
        for i in range(stage.nsteps):
            run_step(&stage.steps[i], job, block, nrows, ncols, scratch, start, rows)


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


cdef inline void run_step(const Step *step, const Job *job, Py_ssize_t block,
                          Py_ssize_t nrows, Py_ssize_t ncols, char *scratch,
                          char **start, char *(*rows)[MOST_ROWS]) noexcept nogil:
    cdef const Stage *stage = job.stage
    cdef const Operand *operand
    cdef const Partial *partial
    cdef char *args[4]
    cdef char *at[4]
    cdef Py_ssize_t steps[4]
    cdef Py_ssize_t between[4]
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
            at[i] = <char *>job.replay.constants[operand.index]
            steps[i] = between[i] = 0
        else:
            partial = &stage.partials[operand.index]
            at[i] = job.replay.data[partial.slot] + block * partial.itemsize
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
    if step.function == run_copy and stage.ndim == 1 and ncols < SHORT_ROW:
        how.cast = NULL
        # Of what is written: a constant has no item size.
        how.itemsize = step.operands[1].itemsize
        transfer_block(&how, at[1], between[1], steps[1], at[0], between[0], steps[0],
                       nrows, ncols)
        return
    row = 0
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
    cdef const Job *job = <const Job *>arg
    cdef Py_ssize_t blocks = job.stage.row_blocks * job.stage.col_blocks
    cdef Py_ssize_t share = job.stage.share
    run_blocks(arg, index * share, min((index + 1) * share, blocks))


cdef void run_stages(void *arg) noexcept nogil:
    """Run all stages in order; threads share the blocks of each."""
    cdef const Replay *replay = <const Replay *>arg
    cdef const Partial *partial
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t blocks
    cdef Job job
    cdef int i, k
    job.replay = replay
    for i in range(replay.nstages):
        job.stage = &replay.stages[i]
        blocks = job.stage.row_blocks * job.stage.col_blocks
        if replay.threaded and not job.stage.serial:
            parallel_for((blocks - 1) // job.stage.share + 1, run_share, &job)
        else:
            run_blocks(&job, 0, blocks)
        for k in range(job.stage.npartials):
            partial = &job.stage.partials[k]
            args[0] = args[2] = replay.data[partial.target]
            args[1] = replay.data[partial.slot]
            steps[0] = steps[2] = 0
            steps[1] = partial.itemsize
            partial.function(args, &blocks, steps, partial.data)
            blocks = job.stage.row_blocks * job.stage.col_blocks

"""Cumulative sums and products as jobs, whose kernel computes lines along an axis.

Results equal NumPy's to the last bit: each line is computed in order. Long lines, and
those in files, are cut. Then their parts are computed one after the other, since sums
of floats that are computed at once would depend on how they are cut.
"""

from libc.string cimport memcmp, memmove, memset

from ndx._array.pinning cimport Operands, compute_on, put, put_constant
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport (
    Transfer, can_transfer, cast_between, transfer_block,
)
from ndx._compute.costs cimport LARGE
from ndx._compute.executor cimport run
from ndx._compute.loops cimport Loop, Ufunc, loop_of
from ndx._compute.passes.run cimport may_pass
from ndx._compute.tiles cimport Job, PLACES, begin_job, count_tiles
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, NDTYPES, has_arithmetic, itemsize_of, kind_of,
    store_scalar,
)
from ndx._lib.layout cimport MAXDIMS, Walk, magnitude
from ndx._lib.numpy_private cimport may_report, reports

cdef extern from "ndx/internal/accumulate.h" nogil:
    ctypedef void (*ndx_accumulate)(char *out, Py_ssize_t out_step,
                                    Py_ssize_t out_across, const char *x,
                                    Py_ssize_t step, Py_ssize_t across,
                                    Py_ssize_t count, Py_ssize_t lines) noexcept
    ndx_accumulate ndx_find_accumulate(bint floats, Py_ssize_t itemsize, bint products)

cdef enum:
    PART = 1 << 15               # elements that a thread takes at a time
    TOGETHER = 4                 # lines that the functions above compute together
    ROW = 16                     # elements: shorter rows are not worth a call
    CACHE_LINES = 64             # elements: whole cache lines of any dtype
    LONG = 1 << 20               # elements: longer lines are cut
    FEWEST = 64                  # elements of a part of a line in a file
    CYCLES = 3                   # of an element

# The lines along the last axis of a walk. They lie side by side along the axis before,
# "across". Operands are the results of earlier parts of each line, the place of a
# part's first element, x and the result.
cdef struct Lines:
    ndx_accumulate accumulate    # NULL: the loop computes lines of complex numbers
    const Loop *loop
    Transfer conversion          # of x to the dtype of the result
    bint converts
    bint by_rows                 # whether the loop gives the same bits for rows
    bint carried                 # whether lines may be cut
    Py_ssize_t itemsize
    Py_ssize_t count             # elements of a line
    Py_ssize_t step[2]           # bytes from element to element, of x and the result
    Py_ssize_t across[2]         # bytes from line to line


cdef void add_rows(const Lines *lines, char *x, char *out,
                   Py_ssize_t length) noexcept nogil:
    """Compute rows of contiguous elements: each is the row before, op that of x."""
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t row, size = length
    memmove(out, x, length * lines.itemsize)
    steps = [lines.itemsize, lines.itemsize, lines.itemsize]
    for row in range(1, lines.count):
        args = [out + (row - 1) * lines.step[1], x + row * lines.step[0],
                out + row * lines.step[1]]
        lines.loop.function(args, &size, steps, lines.loop.data)


cdef void run_loop(const Lines *lines, char *x, char *out) noexcept nogil:
    """Accumulate a line as NumPy does: by a loop whose first operand is its output."""
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t count = lines.count - 1
    memmove(out, x, lines.itemsize)
    if count:
        args = [out, x + lines.step[0], out + lines.step[1]]
        steps = [lines.step[1], lines.step[0], lines.step[1]]
        lines.loop.function(args, &count, steps, lines.loop.data)


cdef enum:
    TRIAL = 40                   # elements of a trial: more than a SIMD vector has

# Whether the loop of a dtype computes in order: 1 yes, -1 no, 0 not known yet.
cdef signed char[NDTYPES] adds
cdef signed char[NDTYPES] multiplies


cdef bint is_in_order(const Lines *lines, int dtype, bint product) except -1:
    """Whether a loop computes each element after it has written the one before.

    A loop that copies its operands first (`_compute.loop_checks`) does not.
    """
    cdef signed char *known = &multiplies[dtype] if product else &adds[dtype]
    cdef Lines trial = lines[0]
    cdef char[TRIAL * 16] values
    cdef char[TRIAL * 16] found
    cdef char[16] wanted
    cdef int i
    if known[0] == 0:
        trial.count = TRIAL
        trial.step = [lines.itemsize, lines.itemsize]
        memset(found, 0, sizeof(found))
        for i in range(TRIAL):
            store_scalar(3 if product and i == 0 else 1, dtype,
                         values + i * lines.itemsize)
        run_loop(&trial, values, found)
        known[0] = 1
        for i in range(TRIAL):
            store_scalar(3 if product else i + 1, dtype, wanted)
            if memcmp(found + i * lines.itemsize, wanted, lines.itemsize):
                known[0] = -1
    return known[0] > 0


cdef void compute_side_by_side(Lines *lines, char *x, char *out,
                               Py_ssize_t length) noexcept nogil:
    """Compute lines that lie side by side."""
    cdef Py_ssize_t line
    if lines.by_rows and length >= ROW \
            and lines.across[0] == lines.itemsize == lines.across[1]:
        add_rows(lines, x, out, length)
    elif lines.accumulate == NULL:
        for line in range(length):
            run_loop(lines, x + line * lines.across[0], out + line * lines.across[1])
    else:
        lines.accumulate(out, lines.step[1], lines.across[1], x, lines.step[0],
                         lines.across[0], lines.count, length)


cdef void combine_first(const Lines *lines, char *out, char *before, Py_ssize_t across,
                        Py_ssize_t length) noexcept nogil:
    """Combine the first elements of lines with the results before them."""
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t count = length
    args[0] = before
    args[1] = args[2] = out
    steps[0] = across
    steps[1] = steps[2] = lines.across[1]
    lines.loop.function(args, &count, steps, lines.loop.data)


cdef void run_lines(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute operand 3 from operand 2, along the last axis."""
    cdef Lines lines = (<const Lines *>arg)[0]
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t length = 1, line
    cdef Transfer plain
    cdef int axis = walk.ndim - 1, outer = max(axis - 1, 0), op
    cdef bint follows = lines.carried and data[1] != <char *>PLACES
    cdef Py_ssize_t across = 0
    cdef char *at[4]
    cdef char *x
    lines.count = walk.shape[axis]
    lines.across[0] = lines.across[1] = 0
    for op in range(4):
        at[op] = data[op]
    for op in range(2):
        lines.step[op] = walk.strides[2 + op][axis]
        if axis:
            lines.across[op] = walk.strides[2 + op][axis - 1]
    if axis:
        length = walk.shape[axis - 1]
        across = walk.strides[0][axis - 1]
    plain.cast = NULL
    plain.itemsize = lines.itemsize
    start_walk(outer, index)
    while True:
        x = at[2]
        if follows or lines.converts:
            transfer_block(&lines.conversion if lines.converts else &plain, at[3],
                           lines.across[1], lines.step[1], x, lines.across[0],
                           lines.step[0], length, lines.count)
            x = at[3]
        if follows:
            combine_first(&lines, x, at[0], across, length)
        if x == at[3]:
            compute_in_place(&lines, x, length)
        else:
            compute_side_by_side(&lines, x, at[3], length)
        if lines.carried:
            x = at[3] + (lines.count - 1) * lines.step[1]
            for line in range(length):
                memmove(at[0] + line * across, x + line * lines.across[1],
                        lines.itemsize)
        if not step_walk(walk, outer, index, 4, at):
            return


cdef void compute_in_place(const Lines *given, char *x,
                           Py_ssize_t length) noexcept nogil:
    """Compute lines that lie side by side, and their results in their place."""
    cdef Lines lines = given[0]
    lines.step[0] = lines.step[1]
    lines.across[0] = lines.across[1]
    compute_side_by_side(&lines, x, x, length)


cdef void set_walk(Walk *walk, BaseArray x, BaseArray out, int axis) noexcept:
    """Set a walk whose last axis is that of the lines; the one before is the closest.

    Axes of length 1 are left out.
    """
    cdef int i, j
    walk.nops = 4
    walk.ndim = 0
    for i in range(x.ndim):
        if i == axis or x.shape[i] == 1:
            continue
        j = walk.ndim
        while j > 0 and magnitude(walk.strides[3][j - 1]) < magnitude(out.strides[i]):
            walk.shape[j] = walk.shape[j - 1]
            walk.strides[2][j] = walk.strides[2][j - 1]
            walk.strides[3][j] = walk.strides[3][j - 1]
            j -= 1
        walk.shape[j] = x.shape[i]
        walk.strides[2][j] = x.strides[i]
        walk.strides[3][j] = out.strides[i]
        walk.ndim += 1
    walk.shape[walk.ndim] = x.shape[axis]
    walk.strides[2][walk.ndim] = x.strides[axis]
    walk.strides[3][walk.ndim] = out.strides[axis]
    walk.ndim += 1
    for i in range(walk.ndim):
        walk.strides[0][i] = 0
        walk.strides[1][i] = 0
    walk.strides[1][walk.ndim - 1] = 1


cdef Py_ssize_t carry(Walk *walk, Py_ssize_t itemsize) noexcept:
    """Let operand 0 have an element for each line; return how many there are."""
    cdef Py_ssize_t count = 1
    cdef int i
    for i in range(walk.ndim - 2, -1, -1):
        walk.strides[0][i] = count * itemsize
        count *= walk.shape[i]
    return count


cdef void divide(Job *job, const Lines *lines) noexcept:
    """Divide lines in memory into parts; they are cut only if they are long."""
    cdef const Walk *walk = job.walk
    cdef Py_ssize_t count = walk.shape[walk.ndim - 1], block, step = TOGETHER
    cdef int axis
    job.grid.ndim = walk.ndim
    for axis in range(walk.ndim):
        job.grid.shape[axis] = walk.shape[axis]
        job.grid.tile[axis] = 1
    job.grid.tile[walk.ndim - 1] = LONG if lines.carried else count
    if walk.ndim > 1:
        axis = walk.ndim - 2
        if walk.strides[3][axis] == lines.itemsize:
            # No two threads write to one cache line.
            step = CACHE_LINES
        block = max(1, PART // count)
        block += -block & (step - 1)
        job.grid.tile[axis] = min(block, walk.shape[axis])
        while axis > 0 and job.grid.tile[axis] == walk.shape[axis] \
                and block > walk.shape[axis]:
            # Short lines: several rows of them.
            block //= walk.shape[axis]
            axis -= 1
            job.grid.tile[axis] = max(1, min(block, walk.shape[axis]))
    count_tiles(&job.grid)
    job.in_order = lines.carried


cdef bint accumulate_lines(str name, Ufunc ufunc, BaseArray x, BaseArray out,
                           int axis) except -1:
    """Write the cumulative results of `x`, in the dtype of `out`, to it.

    Return False, and write nothing, for what is left to NumPy.
    """
    cdef BaseArray before = None
    cdef Operands operands
    cdef Walk walk
    cdef Lines lines
    cdef Job job
    cdef Py_ssize_t count
    cdef bint product = ufunc.name == "multiply", in_file
    if kind_of[out.dtype] == KIND_BOOL or not can_transfer(x.dtype, out.dtype) \
            or ufunc.name not in ("add", "multiply") or may_report() and reports():
        return False
    lines.loop = loop_of(ufunc, out.dtype)
    if lines.loop.function == NULL or lines.loop.in_dtype != out.dtype \
            or lines.loop.out_dtype != out.dtype:
        return False
    if x.size == 0:
        return True
    lines.itemsize = itemsize_of[out.dtype]
    # Vectors of complex numbers are multiplied by other steps than single ones.
    lines.by_rows = not product or kind_of[out.dtype] != KIND_COMPLEX
    lines.accumulate = NULL
    lines.carried = False
    lines.converts = x.dtype != out.dtype
    lines.conversion.cast = NULL
    lines.conversion.itemsize = itemsize_of[x.dtype]
    if lines.converts:
        lines.conversion.cast = cast_between(x.dtype, out.dtype)
    if kind_of[out.dtype] != KIND_COMPLEX and has_arithmetic(out.dtype):
        lines.accumulate = ndx_find_accumulate(
            kind_of[out.dtype] == KIND_FLOAT, lines.itemsize, product)
    elif not is_in_order(&lines, out.dtype, product):
        return False
    set_walk(&walk, x, out, axis)
    operands.count = 0
    put_constant(&operands, <char *>PLACES)
    put_constant(&operands, <char *>PLACES)
    put(&operands, x)
    put(&operands, out)
    if x.size < LARGE:
        compute_on(&operands, &walk, run_lines, &lines, False)
        return True
    begin_job(&job, &operands, &walk, run_lines, &lines)
    job.itemsizes[0] = job.itemsizes[1] = 0
    job.itemsizes[2] = itemsize_of[x.dtype]
    job.itemsizes[3] = lines.itemsize
    job.keeps_axes = True
    job.cycles = CYCLES
    in_file = may_pass(&job)
    if in_file or x.shape[axis] > LONG:
        lines.carried = True
        count = carry(&walk, lines.itemsize)
        before = new_empty(out.dtype, 1, &count)
        operands.count = 0
        put(&operands, before)
        put_constant(&operands, <char *>PLACES)
        put(&operands, x)
        put(&operands, out)
    if in_file:
        job.least = FEWEST
        job.in_order = True
    else:
        divide(&job, &lines)
    run(&job, name)
    return True

"""Cumulative sums and products, on all threads where that pays.

Results equal NumPy's to the last bit: each line is computed in order. One long line is
left to one thread, since the threads' sums of floats would depend on their number.
"""

from libc.string cimport memcmp, memcpy, memset

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport LARGE
from ndx._compute.loops cimport Loop, Ufunc, loop_of
from ndx._compute.numpy_private cimport reporting, reports
from ndx._compute.threads cimport parallel_for
from ndx._lib.dtypes cimport (
    KIND_BOOL, KIND_COMPLEX, KIND_FLOAT, NDTYPES, has_arithmetic, itemsize_of, kind_of,
    store_scalar,
)
from ndx._lib.layout cimport Walk, magnitude

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

# The lines along the accumulated axis. They lie side by side along another axis,
# "across".
cdef struct Lines:
    ndx_accumulate accumulate    # NULL: the loop computes lines of complex numbers
    const Loop *loop
    char **data
    const Walk *walk             # over the other axes
    bint by_rows                 # whether the loop gives the same bits for rows
    Py_ssize_t itemsize
    Py_ssize_t count             # elements of a line
    Py_ssize_t step[2]           # bytes from element to element, of x and the result
    Py_ssize_t across[2]         # bytes from line to line
    Py_ssize_t lines             # side by side
    Py_ssize_t block             # lines of a part
    Py_ssize_t blocks


cdef void add_rows(const Lines *lines, char *x, char *out,
                   Py_ssize_t length) noexcept nogil:
    """Compute rows of contiguous elements: each is the row before, op that of x."""
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t row, size = length
    memcpy(out, x, length * lines.itemsize)
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
    memcpy(out, x, lines.itemsize)
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


cdef void compute_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Lines *lines = <const Lines *>arg
    cdef const Walk *walk = lines.walk
    cdef Py_ssize_t place = index // lines.blocks
    cdef Py_ssize_t first = index % lines.blocks * lines.block
    cdef Py_ssize_t length = min(lines.block, lines.lines - first)
    cdef char *x = lines.data[0] + first * lines.across[0]
    cdef char *out = lines.data[1] + first * lines.across[1]
    cdef Py_ssize_t line
    cdef int axis
    for axis in range(walk.ndim - 1, -1, -1):
        x += place % walk.shape[axis] * walk.strides[0][axis]
        out += place % walk.shape[axis] * walk.strides[1][axis]
        place //= walk.shape[axis]
    if lines.by_rows and length >= ROW \
            and lines.across[0] == lines.itemsize == lines.across[1]:
        add_rows(lines, x, out, length)
    elif lines.accumulate == NULL:
        for line in range(length):
            run_loop(lines, x + line * lines.across[0], out + line * lines.across[1])
    else:
        lines.accumulate(out, lines.step[1], lines.across[1], x, lines.step[0],
                         lines.across[0], lines.count, length)


cdef void compute_all(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute operand 1 from operand 0; the walk is over the axes of `Lines.walk`."""
    cdef Lines *lines = <Lines *>arg
    cdef Py_ssize_t parts = lines.blocks, part
    cdef int axis
    lines.data = data
    lines.walk = walk
    for axis in range(walk.ndim):
        parts *= walk.shape[axis]
    if parts == 1 or parts * lines.block * lines.count < 2 * PART:
        for part in range(parts):
            compute_part(lines, part)
    else:
        parallel_for(parts, compute_part, lines)


cdef int axis_across(BaseArray out, int axis) noexcept:
    """Return the axis whose lines are closest to each other; -1: there is none."""
    cdef int found = -1, i
    for i in range(out.ndim):
        if i != axis and out.shape[i] > 1 and (
                found < 0 or magnitude(out.strides[i]) < magnitude(out.strides[found])):
            found = i
    return found


cdef void divide(Lines *lines) noexcept:
    """Divide lines that lie side by side into parts."""
    cdef Py_ssize_t step = TOGETHER
    if lines.across[1] == lines.itemsize:
        # No two threads write to one cache line.
        step = CACHE_LINES
    lines.block = max(1, PART // lines.count)
    lines.block += -lines.block & (step - 1)
    lines.block = min(lines.block, lines.lines)
    lines.blocks = (lines.lines + lines.block - 1) // lines.block


cdef bint accumulate_lines(Ufunc ufunc, BaseArray x, BaseArray out, int axis) except -1:
    """Write the cumulative results of x to `out`, which has the same dtype.

    Return False, and write nothing, for what is left to NumPy.
    """
    cdef Operands operands
    cdef Walk walk
    cdef Lines lines
    cdef int across, i
    cdef bint product = ufunc.name == "multiply"
    if x.dtype != out.dtype or kind_of[x.dtype] == KIND_BOOL \
            or ufunc.name not in ("add", "multiply") or reporting != 0 and reports():
        return False
    lines.loop = loop_of(ufunc, x.dtype)
    if lines.loop.function == NULL or lines.loop.in_dtype != x.dtype \
            or lines.loop.out_dtype != x.dtype:
        return False
    if x.size == 0:
        return True
    across = axis_across(out, axis)
    lines.itemsize = itemsize_of[x.dtype]
    # Vectors of complex numbers are multiplied by other steps than single ones.
    lines.by_rows = not product or kind_of[x.dtype] != KIND_COMPLEX
    lines.accumulate = NULL
    if kind_of[x.dtype] != KIND_COMPLEX and has_arithmetic(x.dtype):
        lines.accumulate = ndx_find_accumulate(
            kind_of[x.dtype] == KIND_FLOAT, lines.itemsize, product)
    elif not is_in_order(&lines, x.dtype, product):
        return False
    lines.count = x.shape[axis]
    lines.step = [x.strides[axis], out.strides[axis]]
    if across < 0:
        lines.lines = 1
        lines.across = [0, 0]
    else:
        lines.lines = x.shape[across]
        lines.across = [x.strides[across], out.strides[across]]
    divide(&lines)
    operands.count = 0
    put(&operands, x)
    put(&operands, out)
    walk.nops = 2
    walk.ndim = 0
    for i in range(x.ndim):
        if i != axis and i != across:
            walk.shape[walk.ndim] = x.shape[i]
            walk.strides[0][walk.ndim] = x.strides[i]
            walk.strides[1][walk.ndim] = out.strides[i]
            walk.ndim += 1
    compute_on(&operands, &walk, compute_all, &lines, x.size >= LARGE)
    return True

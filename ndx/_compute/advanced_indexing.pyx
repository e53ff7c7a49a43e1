"""Elements selected by masks, and by arrays of indices: read, written and counted."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy, memset

from ndx._array.pinning cimport Compute, Operands, compute_on, put, put_constant
from ndx._array.storage cimport BaseArray, has_shape, new_empty
from ndx._compute.aliasing cimport has_distinct_elements, is_distinct, touches
from ndx._compute.copies cimport copy, copy_into, fill, in_c_order
from ndx._compute.costs cimport LARGE, costs, time_of
from ndx._compute.executor cimport run
from ndx._compute.folds cimport Folding, run_fold
from ndx._compute.loops cimport Loop
from ndx._compute.tiles cimport Grid, Job, PLACES, begin_job, cut_rows, walk_size
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport INT64, KIND_INT, KIND_UINT, itemsize_of, kind_of
from ndx._lib.layout cimport (
    MAXDIMS, MAXOPS, Walk, broadcast_into, fill_c_strides, walk_merge, walk_order,
)


# ---- By masks ------------------------------------------------------------------------
# A mask is gone through in C order, 64 elements at a time. Another thread may change it
# between the count and the copy: then the copy ends with the memory of the result,
# whose rest is zeros.
#
# A mask is cut into parts, in C order. Where the items of a part begin is known from a
# count of all parts.

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef extern from "ndx/internal/select.h" nogil:
    size_t ndx_count(const char *x, Py_ssize_t step, size_t n, int dtype)
    size_t ndx_compress(char *out, size_t room, char *x, Py_ssize_t step,
                        const char *mask, Py_ssize_t mask_step, size_t n, size_t nbytes)
    size_t ndx_expand(const char *values, size_t room, char *x, Py_ssize_t step,
                      const char *mask, Py_ssize_t mask_step, size_t n, size_t nbytes)
    size_t ndx_put(const char *value, size_t room, char *x, Py_ssize_t step,
                   const char *mask, Py_ssize_t mask_step, size_t n, size_t nbytes,
                   size_t itemsize)
    size_t ndx_positions(int64_t *out, size_t room, const char *x, Py_ssize_t step,
                         size_t n, int dtype, int64_t first)

cdef enum:
    MASK_PART = 1 << 15           # fewest elements of a part
    MOST_PARTS = 2048
    CYCLES = 2                    # of an element that is looked at


# What is done with selected elements.
cdef enum Move:
    READ
    WRITE
    FILL                     # one element is written to all

# A selection by a mask.
cdef struct Masked:
    Py_ssize_t nbytes        # of an item: the elements along the axes after the mask's
    Py_ssize_t itemsize      # of an element
    Move move
    int dtype                # of the array whose places are found
    Py_ssize_t shape[MAXDIMS]


# The items of a part of a mask: the next one to be moved, and the first of the next
# part.
cdef struct Items:
    int64_t next
    int64_t end


# ---------------------------------------------------------------- layouts

cdef Py_ssize_t run_of(BaseArray x, int axis) noexcept:
    """Return the bytes of the elements along an axis and the later ones.

    Return -1 if there are none, or gaps between them.
    """
    cdef Py_ssize_t nbytes = itemsize_of[x.dtype]
    cdef int i
    for i in range(x.ndim - 1, axis - 1, -1):
        if x.shape[i] != 1 and x.strides[i] != nbytes:
            return -1
        nbytes *= x.shape[i]
    return nbytes if nbytes else -1


cdef bint prepare_mask(BaseArray x, BaseArray mask, Masked *masked,
                       Walk *walk) noexcept:
    """Set a walk over an array and a mask of its first axes; return whether it can.

    Operand 0 of the walk is for `Items`.
    """
    cdef int axis
    if mask.ndim == 0 or mask.ndim > x.ndim or not has_shape(mask, mask.ndim, x.shape):
        return False
    masked.itemsize = itemsize_of[x.dtype]
    masked.nbytes = run_of(x, mask.ndim)
    masked.move = READ
    if masked.nbytes < 0:
        return False
    walk.nops = 3
    walk.ndim = mask.ndim
    for axis in range(mask.ndim):
        walk.shape[axis] = x.shape[axis]
        walk.strides[0][axis] = 0
        walk.strides[1][axis] = x.strides[axis]
        walk.strides[2][axis] = mask.strides[axis]
    merge(walk)
    return True


cdef inline void merge(Walk *walk) noexcept:
    """Merge the axes of a walk; keep one."""
    cdef int op
    if walk.ndim != 1:
        walk_merge(walk)
        if walk.ndim == 0:
            walk.ndim = 1
            walk.shape[0] = 1
            for op in range(walk.nops):
                walk.strides[op][0] = 0


# ---------------------------------------------------------------- counting

# A reduction to the number of elements that are not zero.
cdef struct Counting:
    Folding folding              # the first: a pointer to it is a pointer to all
    int dtype
    bint starts                  # whether operand 0 has no value yet


cdef void add_counts(char **args, const Py_ssize_t *counts, const Py_ssize_t *strides,
                     void *data) noexcept nogil:
    """Add counts, also without a loop of NumPy's."""
    cdef Py_ssize_t i
    for i in range(counts[0]):
        (<int64_t *>(args[2] + i * strides[2]))[0] = (
            (<int64_t *>(args[0] + i * strides[0]))[0]
            + (<int64_t *>(args[1] + i * strides[1]))[0])


cdef Loop COUNTS
COUNTS.function = add_counts
COUNTS.data = NULL
COUNTS.sum = NULL
COUNTS.in_dtype = COUNTS.second_dtype = COUNTS.out_dtype = INT64


cdef void run_count(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Add the number of elements of operand 1 that are not zero to operand 0."""
    cdef const Counting *counting = <const Counting *>arg
    cdef int last = max(walk.ndim - 1, 0)
    cdef Py_ssize_t length = walk.shape[last] if walk.ndim else 1
    cdef Py_ssize_t step = walk.strides[1][last] if walk.ndim else 0
    cdef int64_t count = 0
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[2]
    at[0] = data[0]
    at[1] = data[1]
    start_walk(last, index)
    while True:
        count += ndx_count(at[1], step, length, counting.dtype)
        if not step_walk(walk, last, index, 2, at):
            break
    if counting.starts:
        (<int64_t *>data[0])[0] = count
    else:
        (<int64_t *>data[0])[0] += count


cdef int count_operands(Operands *operands, BaseArray x) except -1:
    """Write the number of elements of operand 1, `x`, that are not 0 to operand 0."""
    cdef Py_ssize_t[2] itemsizes = [8, itemsize_of[x.dtype]]
    cdef Counting counting
    cdef Walk walk
    walk.nops = 2
    walk.ndim = x.ndim
    memcpy(walk.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memset(walk.strides[0], 0, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], x.strides, x.ndim * sizeof(Py_ssize_t))
    counting.dtype = x.dtype
    counting.starts = True
    if x.size == 0:
        walk.ndim = 1
        walk.shape[0] = 0
    if x.ndim > 1:
        walk_order(&walk)
        walk_merge(&walk)
    if x.size < LARGE:
        return compute_on(operands, &walk, run_count, &counting, False)
    counting.starts = False
    counting.folding.loop = &COUNTS
    counting.folding.run = run_count
    counting.folding.itemsize = 8
    counting.folding.any_order = True
    counting.folding.decides = counting.folding.two_parts = False
    counting.folding.begun = False
    counting.folding.in_order = counting.folding.may_overflow = False
    (<int64_t *>counting.folding.identity)[0] = 0
    return run_fold(&counting.folding, operands, &walk, itemsizes, "count_nonzero")


cdef int count_into(BaseArray result, BaseArray x) except -1:
    """Write the number of elements that are not zero to an array of one int64."""
    cdef Operands operands
    if x.size >= LARGE:
        fill(result, 0)
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    return count_operands(&operands, x)


cdef Py_ssize_t count_true(BaseArray x) except -1:
    """Return the number of elements that are not zero."""
    cdef int64_t count = 0
    cdef Operands operands
    operands.count = 0
    put_constant(&operands, <char *>&count)
    put(&operands, x)
    count_operands(&operands, x)
    return count


# ---------------------------------------------------------------- parts

# A selection in parts: the grid of its jobs, and the items of each part.
cdef struct Parts:
    Grid grid
    Items *items
    Items whole                      # if there is one part


cdef inline void free_parts(Parts *parts) noexcept:
    if parts.items != &parts.whole:
        free(parts.items)


cdef int cut_mask(Parts *parts, const Walk *walk, BaseArray mask, int op) except -1:
    """Cut a walk whose operand `op` is a mask, and count the items of each part.

    A mask of few elements is one part. Afterwards `free_parts` has to be called, even
    after an error.
    """
    cdef Py_ssize_t size = walk_size(walk), count = 1, step = sizeof(Items), i
    cdef int64_t total = 0, found
    cdef Counting counting
    cdef Operands operands
    cdef Walk counted
    cdef Job job
    cdef int axis
    parts.items = &parts.whole
    parts.grid.total = 1
    if size < MASK_PART:
        parts.whole = Items(0, count_true(mask))
        return 0
    if time_of(size, itemsize_of[mask.dtype], CYCLES) >= costs.cut:
        count = max(1, min(MOST_PARTS, size // MASK_PART))
    # No two parts share the 64 elements that are looked at together.
    cut_rows(&parts.grid, walk, ((size - 1) // count | 63) + 1)
    for axis in range(walk.ndim - 1, -1, -1):
        parts.grid.steps[axis] = step
        step *= parts.grid.counts[axis]
    if parts.grid.total <= 1:
        parts.whole = Items(0, count_true(mask))
        return 0
    parts.items = <Items *>calloc(parts.grid.total, sizeof(Items))
    if parts.items == NULL:
        raise MemoryError("no memory for the counts of a mask's parts")
    operands.count = 0
    put_constant(&operands, <char *>parts.items)
    put(&operands, mask)
    counted.ndim = walk.ndim
    counted.nops = 2
    memcpy(counted.shape, walk.shape, walk.ndim * sizeof(Py_ssize_t))
    memset(counted.strides[0], 0, walk.ndim * sizeof(Py_ssize_t))
    memcpy(counted.strides[1], walk.strides[op], walk.ndim * sizeof(Py_ssize_t))
    counting.dtype = mask.dtype
    counting.starts = False
    begin_job(&job, &operands, &counted, run_count, &counting)
    job.itemsizes[0] = 0
    job.itemsizes[1] = itemsize_of[mask.dtype]
    run_parts(&job, parts, "count_nonzero")
    for i in range(parts.grid.total):
        found = parts.items[i].next
        parts.items[i].next = total
        total += found
        parts.items[i].end = total
    return 0


cdef int run_parts(Job *job, const Parts *parts, str name) except -1:
    """Compute a job on the parts of a mask; operand 0 is the items of a part."""
    job.written = 1
    job.independent = job.by_rows = True
    job.cycles = CYCLES
    memcpy(&job.grid, &parts.grid, sizeof(Grid))
    return run(job, name)


cdef inline Py_ssize_t items_of(const Parts *parts) noexcept:
    """Return the number of items in all parts."""
    return parts.items[max(0, parts.grid.total - 1)].end


# Memory of items that were no longer true when they were copied.
cdef struct Missing:
    const Items *items
    Py_ssize_t count
    Py_ssize_t nbytes


cdef void run_clear(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Missing *missing = <const Missing *>arg
    cdef const Items *items
    cdef Py_ssize_t i
    for i in range(missing.count):
        items = &missing.items[i]
        memset(data[0] + items.next * missing.nbytes, 0,
               (items.end - items.next) * missing.nbytes)


cdef int clear_missing(const Parts *parts, BaseArray result,
                       Py_ssize_t nbytes) except -1:
    """Write zeros for items, of some bytes, that another thread made false."""
    cdef Missing missing = Missing(parts.items, max(1, parts.grid.total), nbytes)
    cdef Operands operands
    cdef Py_ssize_t i
    for i in range(missing.count):
        if parts.items[i].next < parts.items[i].end:
            operands.count = 0
            put(&operands, result)
            return compute_on(&operands, NULL, run_clear, &missing, False)
    return 0


# ---------------------------------------------------------------- reading

cdef void run_masked(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Move the items of operand 1 that the mask, operand 2, selects.

    They are copied to operand 3, or written from it.
    """
    cdef const Masked *masked = <const Masked *>arg
    cdef Items *items = <Items *>data[0]
    cdef int last = walk.ndim - 1
    cdef Py_ssize_t length = walk.shape[last], step = walk.strides[1][last]
    cdef Py_ssize_t mask_step = walk.strides[2][last]
    cdef Py_ssize_t index[MAXDIMS]
    cdef char[16] value
    cdef char *at[3]
    at[0], at[1], at[2] = data[0], data[1], data[2]
    if masked.move == FILL:
        # A copy: the element may be one of those that are written.
        memcpy(value, data[3], masked.itemsize)
    start_walk(last, index)
    while True:
        if masked.move == READ:
            items.next += ndx_compress(
                data[3] + items.next * masked.nbytes, items.end - items.next, at[1],
                step, at[2], mask_step, length, masked.nbytes)
        elif masked.move == WRITE:
            items.next += ndx_expand(
                data[3] + items.next * masked.nbytes, items.end - items.next, at[1],
                step, at[2], mask_step, length, masked.nbytes)
        else:
            ndx_put(value, PY_SSIZE_T_MAX, at[1], step, at[2], mask_step, length,
                    masked.nbytes, masked.itemsize)
        if not step_walk(walk, last, index, 3, at):
            return


cdef BaseArray compress(BaseArray x, BaseArray mask):
    """Return ``x[mask]``; None if the layout or the shapes don't allow it here."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Masked masked
    cdef Parts parts
    cdef Walk walk
    cdef int ndim = x.ndim - mask.ndim + 1
    if not prepare_mask(x, mask, &masked, &walk):
        return None
    try:
        cut_mask(&parts, &walk, mask, 2)
        shape[0] = items_of(&parts)
        memcpy(shape + 1, x.shape + mask.ndim, (ndim - 1) * sizeof(Py_ssize_t))
        result = new_empty(x.dtype, ndim, shape)
        operands.count = 0
        put_constant(&operands, <char *>parts.items)
        put(&operands, x)
        put(&operands, mask)
        put(&operands, result)
        run_mask(&operands, &walk, run_masked, &masked, &parts, masked.nbytes, "select")
        clear_missing(&parts, result, masked.nbytes)
    finally:
        free_parts(&parts)
    return result


cdef int run_mask(Operands *operands, const Walk *walk, Compute function,
                  Masked *masked, const Parts *parts, Py_ssize_t nbytes,
                  str name) except -1:
    """Compute on the items that a mask selects; few of them directly.

    `nbytes` are those of an element of operand 1; 0: it is written.
    """
    cdef Job job
    if items_of(parts) == 0:
        return 0
    if parts.grid.total <= 1:
        return compute_on(operands, walk, function, masked, False)
    begin_job(&job, operands, walk, function, masked)
    job.keeps_axes = True
    job.itemsizes[0] = 0
    job.itemsizes[1] = nbytes
    job.itemsizes[2] = 1
    return run_parts(&job, parts, name)


# ---------------------------------------------------------------- writing

cdef bint put_masked(BaseArray x, BaseArray mask, BaseArray source,
                     char *value) except -1:
    """Write ``x[mask] = source``, or an element at `value` if that is None.

    Return False if the layouts or shapes don't allow it here: nothing is written then.
    """
    cdef Operands operands
    cdef Masked masked
    cdef Parts parts
    cdef Walk walk
    cdef int axis
    if touches(x, mask):
        mask = copy(mask)
    if not prepare_mask(x, mask, &masked, &walk):
        return False
    try:
        cut_mask(&parts, &walk, mask, 2)
        if not is_distinct(walk.ndim, walk.shape, walk.strides[1], masked.nbytes):
            # One thread writes all items.
            parts.items[0].end = items_of(&parts)
            parts.grid.total = 1
        masked.move = FILL if source is None or source.size == 1 and source.ndim <= 1 \
            else WRITE
        if masked.move == WRITE:
            if source.ndim != x.ndim - mask.ndim + 1:
                return False
            for axis in range(1, source.ndim):
                if source.shape[axis] != x.shape[axis + mask.ndim - 1]:
                    return False
            if source.shape[0] != items_of(&parts):
                return False
        if source is not None and (
                source.dtype != x.dtype or masked.move == WRITE and (
                    not source.c_contiguous or touches(x, source))):
            source = in_c_order(source, x.dtype)
        operands.count = 0
        put_constant(&operands, <char *>parts.items)
        put(&operands, x)
        put(&operands, mask)
        if source is None:
            put_constant(&operands, value)
        else:
            put(&operands, source)
        run_mask(&operands, &walk, run_masked, &masked, &parts, 0, "put")
    finally:
        free_parts(&parts)
    return True


# ---------------------------------------------------------------- places

cdef void run_places(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the indices of true elements of operand 1 to the last ones, one per axis.

    Operand 2 has no memory: its address is that of `PLACES`, plus the index of an
    element in C order.
    """
    cdef const Masked *masked = <const Masked *>arg
    cdef Items *items = <Items *>data[0]
    cdef int axis, last = walk.ndim - 1
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t found, place, rest, i
    cdef int64_t *out
    cdef char *at[3]
    at[0], at[1], at[2] = data[0], data[1], data[2]
    start_walk(last, index)
    while True:
        rest = at[2] - <char *>PLACES
        place = rest % masked.shape[last]
        found = ndx_positions(
            <int64_t *>data[3 + last] + items.next, items.end - items.next, at[1],
            walk.strides[1][last], walk.shape[last], masked.dtype, place)
        for axis in range(last - 1, -1, -1):
            rest //= masked.shape[axis + 1]
            place = rest % masked.shape[axis]
            out = <int64_t *>data[3 + axis] + items.next
            for i in range(found):
                out[i] = place
        items.next += found
        if not step_walk(walk, last, index, 3, at):
            return


cdef tuple places_of(BaseArray x):
    """Return the indices of the elements that are not zero, an array for each axis.

    Return None for an array of no axes, or of too many.
    """
    cdef Operands operands
    cdef Masked masked
    cdef Parts parts
    cdef Walk walk
    cdef Py_ssize_t count
    cdef int axis
    cdef tuple found
    if x.ndim == 0 or x.ndim > MAXOPS - 3:
        return None
    masked.dtype = x.dtype
    memcpy(masked.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    walk.ndim = x.ndim
    walk.nops = 3
    memcpy(walk.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memset(walk.strides[0], 0, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], x.strides, x.ndim * sizeof(Py_ssize_t))
    fill_c_strides(x.ndim, x.shape, 1, walk.strides[2])
    try:
        cut_mask(&parts, &walk, x, 1)
        count = items_of(&parts)
        if x.ndim == 1:
            found = (new_empty(INT64, 1, &count),)
        else:
            found = tuple([new_empty(INT64, 1, &count) for _ in range(x.ndim)])
        if count == 0:
            return found
        operands.count = 0
        put_constant(&operands, <char *>parts.items)
        put(&operands, x)
        put_constant(&operands, <char *>PLACES)
        for axis in range(x.ndim):
            put(&operands, <BaseArray>found[axis])
        run_mask(&operands, &walk, run_places, &masked, &parts, itemsize_of[x.dtype],
                 "nonzero")
        for axis in range(x.ndim):
            clear_missing(&parts, <BaseArray>found[axis], 8)
    finally:
        free_parts(&parts)
    return found


# ---- By arrays of indices ------------------------------------------------------------
# Indices become offsets in blocks, which are checked as a whole. Before anything is
# written, all indices are checked. Another thread may change them afterwards; therefore
# the offsets that are used are checked once more.
#
# Threads share many indices, or the outer axes. Values are written in the order of
# their indices, by one thread: the last of those for one place is kept.

cdef extern from "ndx/internal/select.h" nogil:
    bint ndx_offsets(Py_ssize_t *offsets, const char *index, Py_ssize_t index_step,
                     size_t n, int dtype, Py_ssize_t length, Py_ssize_t stride,
                     bint more)
    void ndx_gather(char *out, const char *x, const Py_ssize_t *offsets, size_t n,
                    size_t nbytes, size_t unit)
    void ndx_scatter(char *x, const char *values, const Py_ssize_t *offsets, size_t n,
                     size_t nbytes, size_t unit)
    void ndx_scatter_one(char *x, const char *value, const Py_ssize_t *offsets,
                         size_t n, size_t nbytes, size_t itemsize, size_t unit)

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)

cdef enum:
    BLOCK = 1024             # offsets that are computed at a time
    INDEX_CYCLES = 3         # of an index, and of the item that it selects


# A selection by index arrays, of one shape, along neighbouring axes. A walk is over the
# axes before these, and over the indices. Its operands are the array, the indices, and
# the other array.
cdef struct Picks:
    int narrays
    int dtypes[MOST_INDICES]
    Py_ssize_t steps[MOST_INDICES]       # bytes from index to index
    Py_ssize_t lengths[MOST_INDICES]     # of the axes
    Py_ssize_t strides[MOST_INDICES]
    Py_ssize_t count                     # indices in each array
    Py_ssize_t nbytes                    # of the run of elements that each one selects
    Py_ssize_t itemsize
    Py_ssize_t unit                      # bytes that the offsets count
    Move move
    bint checked                         # whether all indices were within bounds
    int failed                           # an index was out of bounds; atomic


cdef inline bint offsets_of(const Picks *picks, char **data, Py_ssize_t start,
                            Py_ssize_t n, Py_ssize_t *offsets) noexcept nogil:
    """Set the offsets of a block; return whether all indices are within bounds."""
    cdef bint bad = False
    cdef int i
    for i in range(picks.narrays):
        bad |= ndx_offsets(offsets, data[1 + i] + start * picks.steps[i],
                           picks.steps[i], n, picks.dtypes[i], picks.lengths[i],
                           picks.strides[i], i > 0)
    return not bad


cdef void run_check(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Check the indices along the last axis."""
    cdef Picks *picks = <Picks *>arg
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t start = 0, count = walk.shape[walk.ndim - 1]
    while start < count:
        if not offsets_of(picks, data, start, min(BLOCK, count - start), offsets):
            ndx_raise_flag(&picks.failed)
            return
        start += BLOCK


cdef void run_picks(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Move the selected runs of operand 0.

    They are copied to the last operand, or written from it.
    """
    cdef Picks *picks = <Picks *>arg
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t index[MAXDIMS]
    cdef int axes = walk.ndim - 1, other = picks.narrays + 1
    # Of the last axis before the indices.
    cdef int last = max(axes - 1, 0)
    cdef Py_ssize_t count = walk.shape[axes], start, row, n = 0
    cdef Py_ssize_t rows = walk.shape[last] if axes else 1
    cdef char *x
    cdef char *values
    cdef char *at[2 + MOST_INDICES]
    if picks.move != READ and count > BLOCK and not picks.checked:
        run_check(arg, data, walk)
        if picks.failed:
            return
    memcpy(at, data, (other + 1) * sizeof(char *))
    start_walk(last, index)
    while True:
        x, values = at[0], at[other]
        for row in range(rows):
            start = 0
            while start < count:
                if n < count:
                    # Offsets that fit in one block are computed once.
                    n = min(BLOCK, count - start)
                    if not offsets_of(picks, data, start, n, offsets):
                        ndx_raise_flag(&picks.failed)
                        return
                if picks.move == READ:
                    ndx_gather(values + start * picks.nbytes, x, offsets, n,
                               picks.nbytes, picks.unit)
                elif picks.move == WRITE:
                    ndx_scatter(x, values + start * picks.nbytes, offsets, n,
                                picks.nbytes, picks.unit)
                else:
                    ndx_scatter_one(x, values, offsets, n, picks.nbytes,
                                    picks.itemsize, picks.unit)
                start += n
            if row + 1 < rows:
                x += walk.strides[0][last]
                values += walk.strides[other][last]
        if not step_walk(walk, last, index, other + 1, at):
            return


cdef void start_pick(Job *job, Operands *operands, const Walk *walk, Compute kernel,
                     Picks *picks) noexcept:
    """Describe a selection as a job that reads and writes operand 0 anywhere."""
    cdef int i
    begin_job(job, operands, walk, kernel, picks)
    job.keeps_axes = True
    job.cycles = INDEX_CYCLES
    job.itemsizes[0] = 0
    for i in range(picks.narrays):
        job.itemsizes[1 + i] = itemsize_of[picks.dtypes[i]]
    job.itemsizes[1 + picks.narrays] = picks.nbytes


# ---------------------------------------------------------------- layouts

cdef int prepare(BaseArray x, int axis, int count, PyObject **indices, Picks *picks,
                 Py_ssize_t *shape) noexcept:
    """Describe a selection, and set its shape; return its number of axes, or -1.

    -1 means that the layouts or shapes don't allow it here.
    """
    cdef BaseArray first = <BaseArray>indices[0], found
    cdef int i, ndim = x.ndim - count + first.ndim
    if count > MOST_INDICES or axis + count > x.ndim or ndim > MAXDIMS \
            or first.size == 0:
        return -1
    picks.narrays = count
    picks.count = first.size
    picks.itemsize = itemsize_of[x.dtype]
    picks.nbytes = run_of(x, axis + count)
    picks.move = READ
    picks.checked = False
    picks.failed = False
    if picks.nbytes < 0:
        return -1
    for i in range(count):
        found = <BaseArray>indices[i]
        if kind_of[found.dtype] != KIND_INT and kind_of[found.dtype] != KIND_UINT \
                or not has_shape(found, first.ndim, first.shape):
            return -1
        picks.dtypes[i] = found.dtype
        if found.c_contiguous:
            picks.steps[i] = itemsize_of[found.dtype]
        elif found.ndim == 1:
            picks.steps[i] = found.strides[0]
        else:
            return -1
        picks.lengths[i] = x.shape[axis + i]
        picks.strides[i] = x.strides[axis + i]
    picks.unit = 1
    if count == 1 and picks.nbytes <= 8 and picks.strides[0] == picks.nbytes and (
            picks.nbytes & (picks.nbytes - 1)) == 0:
        # A loop over elements has no multiplication.
        picks.unit = picks.nbytes
        picks.strides[0] = 1
    for i in range(axis):
        if x.shape[i] == 0:
            return -1
        shape[i] = x.shape[i]
    memcpy(shape + axis, first.shape, first.ndim * sizeof(Py_ssize_t))
    memcpy(shape + axis + first.ndim, x.shape + axis + count,
           (x.ndim - axis - count) * sizeof(Py_ssize_t))
    return ndim


cdef void put_operands(Operands *operands, BaseArray x, BaseArray other, char *value,
                       int count, PyObject **indices) noexcept:
    cdef int i
    operands.count = 0
    put(operands, x)
    for i in range(count):
        put(operands, <BaseArray>indices[i])
    if other is None:
        put_constant(operands, value)
    else:
        put(operands, other)


cdef void set_walk(Walk *walk, const Picks *picks, BaseArray x,
                   const Py_ssize_t *strides, int ndim) noexcept:
    """Set a walk over the first axes of an array, and over indices.

    `strides` are those of the other array along the first axes.
    """
    cdef int i, other = picks.narrays + 1
    walk.nops = other + 1
    walk.ndim = ndim
    memcpy(walk.shape, x.shape, ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], x.strides, ndim * sizeof(Py_ssize_t))
    for i in range(picks.narrays):
        memset(walk.strides[1 + i], 0, ndim * sizeof(Py_ssize_t))
    memset(walk.strides[other], 0, ndim * sizeof(Py_ssize_t))
    if picks.move != FILL:
        memcpy(walk.strides[other], strides, ndim * sizeof(Py_ssize_t))
    walk_merge(walk)
    walk.shape[walk.ndim] = picks.count
    walk.strides[0][walk.ndim] = 0
    for i in range(picks.narrays):
        walk.strides[1 + i][walk.ndim] = picks.steps[i]
    walk.strides[other][walk.ndim] = 0 if picks.move == FILL else picks.nbytes
    walk.ndim += 1


cdef BaseArray gather(BaseArray x, int axis, int count, PyObject **indices):
    """Return the elements that index arrays select along axes from `axis` on.

    Return None if the layouts don't allow it here, or an index is out of bounds.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Picks picks
    cdef Walk walk
    cdef Job job
    cdef int ndim = prepare(x, axis, count, indices, &picks, shape)
    if ndim < 0:
        return None
    result = new_empty(x.dtype, ndim, shape)
    put_operands(&operands, x, result, NULL, count, indices)
    set_walk(&walk, &picks, x, result.strides, axis)
    if result.size < LARGE:
        compute_on(&operands, &walk, run_picks, &picks, False)
    else:
        start_pick(&job, &operands, &walk, run_picks, &picks)
        run(&job, "take")
    return None if picks.failed else result


cdef bint scatter(BaseArray x, int axis, int count, PyObject **indices,
                  BaseArray source, char *value) except -1:
    """Write `source`, or an element at `value` if that is None, to what indices select.

    Return False if the layouts or shapes don't allow it here, or an index is out of
    bounds: nothing is written then.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    cdef Operands operands
    cdef Picks picks
    cdef Walk walk
    cdef Job job
    cdef int i, ndim = prepare(x, axis, count, indices, &picks, shape)
    if ndim < 0:
        return False
    for i in range(count):
        if touches(x, <BaseArray>indices[i]):
            return False
    picks.move = FILL if source is None or source.size == 1 and source.ndim <= ndim \
        else WRITE
    fill_c_strides(ndim, shape, picks.itemsize, strides)
    if picks.move == WRITE:
        if not has_shape(source, ndim, shape):
            source = spread(source, x.dtype, ndim, shape)
            if source is None:
                return False
        elif source.dtype != x.dtype or not source.c_contiguous or touches(x, source):
            source = in_c_order(source, x.dtype)
    elif source is not None and (source.dtype != x.dtype or touches(x, source)):
        source = in_c_order(source, x.dtype)
    put_operands(&operands, x, source, value, count, indices)
    set_walk(&walk, &picks, x, strides, axis)
    if picks.count * (picks.nbytes // picks.itemsize) < LARGE:
        compute_on(&operands, &walk, run_picks, &picks, False)
        return not picks.failed
    # Nothing is written if an index is out of bounds.
    start_pick(&job, &operands, &walk, run_check, &picks)
    job.written = 1
    job.itemsizes[1 + picks.narrays] = 0
    job.independent = True
    run(&job, "put")
    if picks.failed:
        return False
    picks.checked = True
    start_pick(&job, &operands, &walk, run_picks, &picks)
    job.written = 1
    # The last of several values for one place is kept.
    job.independent = picks.move == FILL and has_distinct_elements(x)
    job.in_order = not job.independent
    run(&job, "put")
    return not picks.failed


cdef BaseArray spread(BaseArray source, int dtype, int ndim, const Py_ssize_t *shape):
    """Return values broadcast to a shape, as a new array; None if they can't be."""
    cdef Py_ssize_t wide[MAXDIMS]
    cdef BaseArray result
    cdef int axis
    memcpy(wide, shape, ndim * sizeof(Py_ssize_t))
    if source.ndim > ndim or broadcast_into(ndim, wide, source.ndim, source.shape) < 0:
        return None
    for axis in range(ndim):
        if wide[axis] != shape[axis]:
            return None
    result = new_empty(dtype, ndim, shape)
    copy_into(result, source)
    return result

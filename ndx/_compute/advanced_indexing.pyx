"""Elements selected by masks, and by arrays of indices: read, written and counted."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ndx._array.pinning cimport (
    Compute, Operands, compute_held, compute_on, put, put_constant,
)
from ndx._array.storage cimport BaseArray, has_shape, new_empty
from ndx._compute.aliasing cimport has_distinct_elements, is_distinct, touches
from ndx._compute.copies cimport LARGE, copy, copy_into, in_c_order
from ndx._compute.passes.parts cimport Steps, steps_over
from ndx._compute.passes.tiles cimport walk_size
from ndx._compute.threads cimport parallel_for, thread_count
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
# A large mask is cut along its first axis into parts that threads take in turn. Where
# the items of a part begin is known from a count of all parts.

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
    WORTH_PARTS = 1 << 18     # elements of a mask from which threads pay
    MASK_PART = 1 << 15           # fewest elements of a part
    MOST_PARTS = 256


# A selection by a mask.
cdef struct Masked:
    Py_ssize_t nbytes        # of an item: the elements along the axes after the mask's
    Py_ssize_t itemsize      # of an element
    Py_ssize_t room          # items that may be moved
    Py_ssize_t done          # items that were moved
    Py_ssize_t first         # index of the first element along the first axis
    int dtype                # of the elements whose places are found
    bint constant            # whether one element is written to all items


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


cdef bint prepare_mask(BaseArray x, BaseArray mask, Masked *job, Walk *walk) noexcept:
    """Set a walk over an array and a mask of its first axes; return whether it can."""
    cdef int axis
    if mask.ndim == 0 or mask.ndim > x.ndim or not has_shape(mask, mask.ndim, x.shape):
        return False
    job.itemsize = itemsize_of[x.dtype]
    job.nbytes = run_of(x, mask.ndim)
    job.done = 0
    job.first = 0
    job.constant = False
    if job.nbytes < 0:
        return False
    walk.nops = 2
    walk.ndim = mask.ndim
    for axis in range(mask.ndim):
        walk.shape[axis] = x.shape[axis]
        walk.strides[0][axis] = x.strides[axis]
        walk.strides[1][axis] = mask.strides[axis]
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

cdef void run_count(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Count the elements of operand 0 that are not zero; `arg` is the dtype."""
    cdef int last = walk.ndim - 1
    cdef int64_t count = 0
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[1]
    at[0] = data[0]
    start_walk(last, index)
    while True:
        count += ndx_count(at[0], walk.strides[0][last], walk.shape[last],
                           <int><Py_ssize_t>arg)
        if not step_walk(walk, last, index, 1, at):
            break
    (<int64_t *>data[1])[0] = count


cdef int count_operands(Operands *operands, BaseArray x) except -1:
    """Write the number of elements of `x` that are not zero to operand 1."""
    cdef Walk walk
    walk.nops = 1
    walk.ndim = x.ndim
    memcpy(walk.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], x.strides, x.ndim * sizeof(Py_ssize_t))
    if x.size == 0:
        walk.ndim = 1
        walk.shape[0] = 0
    if x.ndim > 1:
        walk_order(&walk)
    elif x.ndim == 0:
        # Any number of axes but 1 is merged.
        walk.ndim = 0
    merge(&walk)
    return compute_on(operands, &walk, run_count, <void *><Py_ssize_t>x.dtype,
                      x.size >= LARGE)


cdef int count_into(BaseArray result, BaseArray x) except -1:
    """Write the number of elements that are not zero to an array of one int64."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    return count_operands(&operands, x)


cdef Py_ssize_t count_true(BaseArray x) except -1:
    """Return the number of elements that are not zero."""
    cdef int64_t count = 0
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    put_constant(&operands, <char *>&count)
    count_operands(&operands, x)
    return count


# ---------------------------------------------------------------- parts

# A walk that is cut along its first axis.
cdef struct MaskParts:
    Py_ssize_t count
    Py_ssize_t length                    # of the first axis in a part
    Py_ssize_t starts[MOST_PARTS + 1]    # the true elements before each part
    int op                               # the operand whose elements are counted
    int dtype                            # of that operand
    const Walk *walk
    char **data
    int noperands
    Compute function
    Masked *job
    Py_ssize_t step                      # bytes of an item of further operands


cdef bint cut(MaskParts *parts, const Walk *walk) noexcept:
    """Cut a walk into parts if threads pay; return whether there are several."""
    cdef Py_ssize_t size = walk_size(walk)
    parts.count = 1
    if size < WORTH_PARTS or thread_count() < 2:
        return False
    parts.count = min(MOST_PARTS, size // MASK_PART, walk.shape[0])
    parts.length = (walk.shape[0] + parts.count - 1) // parts.count
    # No two parts share the 64 elements of a word.
    parts.length += -parts.length & 63 if walk.ndim == 1 else 0
    parts.count = (walk.shape[0] + parts.length - 1) // parts.length
    return parts.count > 1


cdef void set_part(const MaskParts *parts, Py_ssize_t index, Walk *walk,
                   char **data) noexcept nogil:
    cdef Py_ssize_t start = index * parts.length
    cdef int op
    memcpy(walk, parts.walk, sizeof(Walk))
    walk.shape[0] = min(parts.length, walk.shape[0] - start)
    for op in range(parts.noperands):
        data[op] = parts.data[op]
        if op < walk.nops:
            data[op] += start * walk.strides[op][0]


cdef void count_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef MaskParts *parts = <MaskParts *>arg
    cdef int64_t count = 0
    cdef char *data[MAXOPS]
    cdef char *operands[2]
    cdef Walk walk
    set_part(parts, index, &walk, data)
    memcpy(walk.strides[0], parts.walk.strides[parts.op],
           walk.ndim * sizeof(Py_ssize_t))
    operands[0] = parts.data[0] + index * parts.length * walk.strides[0][0]
    operands[1] = <char *>&count
    run_count(<void *><Py_ssize_t>parts.dtype, operands, &walk)
    parts.starts[index + 1] = count


cdef void run_count_parts(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef MaskParts *parts = <MaskParts *>arg
    cdef Py_ssize_t i
    parts.data = data
    parallel_for(parts.count, count_part, parts)
    parts.starts[0] = 0
    for i in range(parts.count):
        parts.starts[i + 1] += parts.starts[i]


cdef Py_ssize_t count_parts(MaskParts *parts, BaseArray x, const Walk *walk,
                            int op) except -1:
    """Count the true elements of each part; return their sum.

    `x` is operand `op` of the walk.
    """
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    parts.walk = walk
    parts.noperands = 0
    parts.op = op
    parts.dtype = x.dtype
    compute_held(&operands, walk, run_count_parts, parts)
    return parts.starts[parts.count]


cdef void select_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const MaskParts *parts = <const MaskParts *>arg
    cdef char *data[MAXOPS]
    cdef Masked job
    cdef Walk walk
    cdef int op
    set_part(parts, index, &walk, data)
    memcpy(&job, parts.job, sizeof(Masked))
    job.first = index * parts.length
    if parts.step:
        job.room = parts.starts[index + 1] - parts.starts[index]
        for op in range(walk.nops, parts.noperands):
            data[op] += parts.starts[index] * parts.step
    parts.function(&job, data, &walk)


cdef void select_parts(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef MaskParts *parts = <MaskParts *>arg
    parts.data = data
    parallel_for(parts.count, select_part, parts)


cdef int compute_parts(MaskParts *parts, Operands *operands, const Walk *walk,
                       Compute function, Masked *job, Py_ssize_t step) except -1:
    """Compute the parts of a walk, whose true elements were counted.

    Operands that are not in the walk have `step` bytes for each true element.
    """
    parts.walk = walk
    parts.noperands = operands.count
    parts.function = function
    parts.job = job
    parts.step = step
    return compute_held(operands, walk, select_parts, parts)


# ---------------------------------------------------------------- reading

cdef void run_compress(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy the items of operand 0 that the mask, operand 1, selects to operand 2."""
    cdef Masked *job = <Masked *>arg
    cdef int last = walk.ndim - 1
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[2]
    at[0] = data[0]
    at[1] = data[1]
    start_walk(last, index)
    while True:
        job.done += ndx_compress(
            data[2] + job.done * job.nbytes, job.room - job.done, at[0],
            walk.strides[0][last], at[1], walk.strides[1][last], walk.shape[last],
            job.nbytes)
        if not step_walk(walk, last, index, 2, at):
            break
    if job.done < job.room:
        memset(data[2] + job.done * job.nbytes, 0, (job.room - job.done) * job.nbytes)


cdef BaseArray compress(BaseArray x, BaseArray mask):
    """Return ``x[mask]``; None if the layout or the shapes don't allow it here."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Masked job
    cdef MaskParts parts
    cdef Walk walk
    cdef int ndim = x.ndim - mask.ndim + 1
    if not prepare_mask(x, mask, &job, &walk):
        return None
    if cut(&parts, &walk):
        shape[0] = count_parts(&parts, mask, &walk, 1)
    else:
        shape[0] = count_true(mask)
    job.room = shape[0]
    memcpy(shape + 1, x.shape + mask.ndim, (ndim - 1) * sizeof(Py_ssize_t))
    result = new_empty(x.dtype, ndim, shape)
    operands.count = 0
    put(&operands, x)
    put(&operands, mask)
    put(&operands, result)
    if parts.count > 1:
        compute_parts(&parts, &operands, &walk, run_compress, &job, job.nbytes)
    else:
        compute_on(&operands, &walk, run_compress, &job,
                   mask.size >= LARGE or result.size >= LARGE)
    return result


# ---------------------------------------------------------------- writing

cdef void run_put(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write operand 2 to the items of operand 0 that the mask, operand 1, selects."""
    cdef Masked *job = <Masked *>arg
    cdef int last = walk.ndim - 1
    cdef Py_ssize_t index[MAXDIMS]
    cdef char[16] value
    cdef char *at[2]
    at[0] = data[0]
    at[1] = data[1]
    if job.constant:
        # A copy: the element may be one of those that are written.
        memcpy(value, data[2], job.itemsize)
    start_walk(last, index)
    while True:
        if job.constant:
            ndx_put(value, job.room, at[0], walk.strides[0][last], at[1],
                    walk.strides[1][last], walk.shape[last], job.nbytes, job.itemsize)
        else:
            job.done += ndx_expand(
                data[2] + job.done * job.nbytes, job.room - job.done, at[0],
                walk.strides[0][last], at[1], walk.strides[1][last], walk.shape[last],
                job.nbytes)
        if not step_walk(walk, last, index, 2, at):
            return


cdef bint put_masked(BaseArray x, BaseArray mask, BaseArray source,
                     char *value) except -1:
    """Write ``x[mask] = source``, or an element at `value` if that is None.

    Return False if the layouts or shapes don't allow it here: nothing is written then.
    """
    cdef Operands operands
    cdef Masked job
    cdef MaskParts parts
    cdef Walk walk
    cdef int axis
    cdef bint divided
    parts.count = 0
    if touches(x, mask):
        mask = copy(mask)
    if not prepare_mask(x, mask, &job, &walk):
        return False
    divided = is_distinct(walk.ndim, walk.shape, walk.strides[0], job.nbytes) \
        and cut(&parts, &walk)
    job.room = PY_SSIZE_T_MAX
    job.constant = source is None or source.size == 1 and source.ndim <= 1
    if not job.constant:
        if source.ndim != x.ndim - mask.ndim + 1:
            return False
        for axis in range(1, source.ndim):
            if source.shape[axis] != x.shape[axis + mask.ndim - 1]:
                return False
        if divided:
            job.room = count_parts(&parts, mask, &walk, 1)
        else:
            job.room = count_true(mask)
        if source.shape[0] != job.room:
            return False
    if source is not None and (source.dtype != x.dtype or not job.constant and (
            not source.c_contiguous or touches(x, source))):
        source = in_c_order(source, x.dtype)
    operands.count = 0
    put(&operands, x)
    put(&operands, mask)
    if source is None:
        put_constant(&operands, value)
    else:
        put(&operands, source)
    if divided:
        compute_parts(&parts, &operands, &walk, run_put, &job,
                      0 if job.constant else job.nbytes)
        return True
    compute_on(&operands, &walk, run_put, &job,
               mask.size >= LARGE or mask.size * (job.nbytes // job.itemsize) >= LARGE)
    return True


# ---------------------------------------------------------------- places

cdef void run_places(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the indices of true elements of operand 0 to the others, one per axis."""
    cdef Masked *job = <Masked *>arg
    cdef int axis, last = walk.ndim - 1
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t found, place, i
    cdef int64_t *out
    cdef char *at[1]
    at[0] = data[0]
    start_walk(last, index)
    while True:
        found = ndx_positions(
            <int64_t *>data[walk.ndim] + job.done, job.room - job.done, at[0],
            walk.strides[0][last], walk.shape[last], job.dtype,
            0 if last else job.first)
        for axis in range(last):
            out = <int64_t *>data[axis + 1] + job.done
            place = index[axis] if axis else job.first + index[0]
            for i in range(found):
                out[i] = place
        job.done += found
        if not step_walk(walk, last, index, 1, at):
            break
    for axis in range(walk.ndim):
        memset(data[axis + 1] + 8 * job.done, 0, 8 * (job.room - job.done))


cdef tuple places_of(BaseArray x):
    """Return the indices of the elements that are not zero, an array for each axis.

    Return None for an array of no axes, or of too many.
    """
    cdef Operands operands
    cdef Masked job
    cdef MaskParts parts
    cdef Walk walk
    cdef Py_ssize_t count
    cdef int axis
    cdef tuple found
    if x.ndim == 0 or x.ndim >= MAXOPS:
        return None
    job.dtype = x.dtype
    job.done = 0
    job.first = 0
    walk.ndim = x.ndim
    walk.nops = 1
    memcpy(walk.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], x.strides, x.ndim * sizeof(Py_ssize_t))
    if cut(&parts, &walk):
        count = count_parts(&parts, x, &walk, 0)
    else:
        count = count_true(x)
    job.room = count
    if x.ndim == 1:
        found = (new_empty(INT64, 1, &count),)
    else:
        found = tuple([new_empty(INT64, 1, &count) for _ in range(x.ndim)])
    if count == 0:
        return found
    operands.count = 0
    put(&operands, x)
    for axis in range(x.ndim):
        put(&operands, <BaseArray>found[axis])
    if parts.count > 1:
        compute_parts(&parts, &operands, &walk, run_places, &job, 8)
    else:
        compute_on(&operands, &walk, run_places, &job, x.size >= LARGE)
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
    WORTH_THREADS = 1 << 20  # bytes, or eight times the items, from which threads pay
    INDEX_PART = 256 << 10   # bytes of a part, counted in the same way


# A selection by index arrays, of one shape, along neighbouring axes.
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
    bint constant                        # whether one element is written to all
    bint checked                         # whether all indices were within bounds
    int failed                           # an index was out of bounds


cdef inline bint offsets_of(const Picks *job, char **data, Py_ssize_t start,
                            Py_ssize_t n, Py_ssize_t *offsets) noexcept nogil:
    """Set the offsets of a block; return whether all indices are within bounds."""
    cdef bint bad = False
    cdef int i
    for i in range(job.narrays):
        bad |= ndx_offsets(offsets, data[2 + i] + start * job.steps[i], job.steps[i], n,
                           job.dtypes[i], job.lengths[i], job.strides[i], i > 0)
    return not bad


cdef void run_check(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Picks *job = <Picks *>arg
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t start = 0
    while start < job.count and not job.failed:
        job.failed = not offsets_of(job, data, start, min(BLOCK, job.count - start),
                                    offsets)
        start += BLOCK


cdef void run_gather(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy the selected runs of operand 0 to operand 1; the walk is over outer axes."""
    cdef Picks *job = <Picks *>arg
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t start, row, n = 0
    cdef int last = max(walk.ndim - 1, 0)
    cdef Py_ssize_t rows = walk.shape[last] if walk.ndim else 1
    cdef const char *x
    cdef char *out
    cdef char *at[2]
    at[0] = data[0]
    at[1] = data[1]
    start_walk(last, index)
    while True:
        x, out = at[0], at[1]
        for row in range(rows):
            start = 0
            while start < job.count:
                if n < job.count:
                    # Offsets that fit in one block are computed once.
                    n = min(BLOCK, job.count - start)
                    if not offsets_of(job, data, start, n, offsets):
                        job.failed = True
                        return
                ndx_gather(out + start * job.nbytes, x, offsets, n, job.nbytes,
                           job.unit)
                start += n
            if row + 1 < rows:
                x += walk.strides[0][last]
                out += walk.strides[1][last]
        if not step_walk(walk, last, index, 2, at):
            return


cdef void run_scatter(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write operand 1 to the selected runs of operand 0."""
    cdef Picks *job = <Picks *>arg
    cdef Py_ssize_t offsets[BLOCK]
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t start, n = 0
    cdef char *at[2]
    if job.count > BLOCK and not job.checked:
        run_check(arg, data, walk)
        if job.failed:
            return
    at[0] = data[0]
    at[1] = data[1]
    start_walk(walk.ndim, index)
    while True:
        start = 0
        while start < job.count:
            if n < job.count:
                n = min(BLOCK, job.count - start)
                if not offsets_of(job, data, start, n, offsets):
                    job.failed = True
                    return
            if job.constant:
                ndx_scatter_one(at[0], data[1], offsets, n, job.nbytes, job.itemsize,
                                job.unit)
            else:
                ndx_scatter(at[0], at[1] + start * job.nbytes, offsets, n, job.nbytes,
                            job.unit)
            start += n
        if not step_walk(walk, walk.ndim, index, 2, at):
            return


# ---------------------------------------------------------------- parts

# A part of a selection: of its first outer axis, if there is one, and of its indices.
cdef struct Range:
    Picks *job
    Compute function
    Py_ssize_t first
    Py_ssize_t rows
    Py_ssize_t start
    Py_ssize_t count


cdef void run_range(void *arg, char **whole, const Walk *all_rows) noexcept nogil:
    cdef const Range *part = <const Range *>arg
    cdef char *data[2 + MOST_INDICES]
    cdef Picks job
    cdef Walk walk
    cdef int i
    memcpy(&job, part.job, sizeof(Picks))
    memcpy(&walk, all_rows, sizeof(Walk))
    for i in range(2 + job.narrays):
        data[i] = whole[i]
    if walk.ndim:
        walk.shape[0] = part.rows
        data[0] += part.first * walk.strides[0][0]
        if not job.constant:
            data[1] += part.first * walk.strides[1][0]
    job.count = part.count
    if not job.constant:
        data[1] += part.start * job.nbytes
    for i in range(job.narrays):
        data[2 + i] += part.start * job.steps[i]
    part.function(&job, data, &walk)
    if job.failed:
        ndx_raise_flag(&part.job.failed)


# A selection that is cut along its indices or, if there are outer axes, the first one.
cdef struct Parts:
    Picks *job
    char **data
    const Walk *walk
    Compute function
    Py_ssize_t count
    Py_ssize_t length


cdef void compute_part(void *arg, Py_ssize_t index) noexcept nogil:
    cdef const Parts *parts = <const Parts *>arg
    cdef Py_ssize_t start = index * parts.length
    cdef Range part = Range(parts.job, parts.function, 0, 0, 0, parts.job.count)
    if parts.walk.ndim:
        part.first = start
        part.rows = min(parts.length, parts.walk.shape[0] - start)
    else:
        part.start = start
        part.count = min(parts.length, parts.job.count - start)
    run_range(&part, parts.data, parts.walk)


cdef void run_parts(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Parts *parts = <Parts *>arg
    parts.data = data
    parts.walk = walk
    if parts.job.constant:
        # Nothing is written if an index is out of bounds.
        run_check(parts.job, data, walk)
        if parts.job.failed:
            return
        parts.job.checked = True
    parallel_for(parts.count, compute_part, parts)


cdef int compute_picks(Operands *operands, const Walk *walk, Compute function,
                       Picks *job, bint large, bint independent) except -1:
    """Compute a selection, on threads if that pays and the order does not matter."""
    cdef Parts parts
    cdef Py_ssize_t each = max(job.nbytes, 8), length = job.count
    cdef int axis
    if large and independent and thread_count() > 1:
        if walk.ndim:
            each *= job.count
            for axis in range(1, walk.ndim):
                each *= walk.shape[axis]
            length = walk.shape[0]
        parts.length = max(INDEX_PART // each, 1)
        parts.count = (length + parts.length - 1) // parts.length
        if length * each >= WORTH_THREADS and parts.count > 1:
            parts.job = job
            parts.function = function
            return compute_held(operands, walk, run_parts, &parts)
    return compute_on(operands, walk, function, job, large)


cdef bint gather_steps(Operands *operands, const Walk *walk, Picks *job) except -1:
    """Gather step by step if arrays in files are large; return whether that was so."""
    cdef Steps steps = steps_over("take", (
        <BaseArray>operands.arrays[0], <BaseArray>operands.arrays[1]))
    cdef Py_ssize_t each = job.nbytes, outer = 1, most, done
    cdef Range part = Range(job, run_gather, 0, 1, 0, 0)
    cdef int axis
    if steps is None:
        return False
    for axis in range(1, walk.ndim):
        each *= walk.shape[axis]
    if walk.ndim:
        outer = walk.shape[0]
    most = max(1, steps.now.block // each)                # indices of a step
    try:
        while part.first < outer and not job.failed:
            part.count = min(most, job.count - part.start)
            part.rows = min(max(1, most // job.count), outer - part.first)
            compute_on(operands, walk, run_range, &part, True)
            part.start += part.count
            if part.start == job.count:
                part.start = 0
                part.first += part.rows
            done = steps.total * (part.first * job.count + part.start) // (
                outer * job.count)
            steps.step(done - steps.done)
    finally:
        steps.end()
    return True


# ---------------------------------------------------------------- layouts

cdef int prepare(BaseArray x, int axis, int count, PyObject **indices, Picks *job,
                 Py_ssize_t *shape) noexcept:
    """Describe a selection, and set its shape; return its number of axes, or -1.

    -1 means that the layouts or shapes don't allow it here.
    """
    cdef BaseArray first = <BaseArray>indices[0], found
    cdef int i, ndim = x.ndim - count + first.ndim
    if count > MOST_INDICES or axis + count > x.ndim or ndim > MAXDIMS \
            or first.size == 0:
        return -1
    job.narrays = count
    job.count = first.size
    job.itemsize = itemsize_of[x.dtype]
    job.nbytes = run_of(x, axis + count)
    job.constant = False
    job.checked = False
    job.failed = False
    if job.nbytes < 0:
        return -1
    for i in range(count):
        found = <BaseArray>indices[i]
        if kind_of[found.dtype] != KIND_INT and kind_of[found.dtype] != KIND_UINT \
                or not has_shape(found, first.ndim, first.shape):
            return -1
        job.dtypes[i] = found.dtype
        if found.c_contiguous:
            job.steps[i] = itemsize_of[found.dtype]
        elif found.ndim == 1:
            job.steps[i] = found.strides[0]
        else:
            return -1
        job.lengths[i] = x.shape[axis + i]
        job.strides[i] = x.strides[axis + i]
    job.unit = 1
    if count == 1 and job.nbytes <= 8 and job.strides[0] == job.nbytes and (
            job.nbytes & (job.nbytes - 1)) == 0:
        # A loop over elements has no multiplication.
        job.unit = job.nbytes
        job.strides[0] = 1
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
    if other is None:
        put_constant(operands, value)
    else:
        put(operands, other)
    for i in range(count):
        put(operands, <BaseArray>indices[i])


cdef void walk_outer(Walk *walk, BaseArray x, const Py_ssize_t *strides,
                     int ndim) noexcept:
    """Set a walk over the first axes of an array and of another operand."""
    walk.nops = 2
    walk.ndim = ndim
    if ndim:
        memcpy(walk.shape, x.shape, ndim * sizeof(Py_ssize_t))
        memcpy(walk.strides[0], x.strides, ndim * sizeof(Py_ssize_t))
        memcpy(walk.strides[1], strides, ndim * sizeof(Py_ssize_t))
        walk_merge(walk)


cdef BaseArray gather(BaseArray x, int axis, int count, PyObject **indices):
    """Return the elements that index arrays select along axes from `axis` on.

    Return None if the layouts don't allow it here, or an index is out of bounds.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Picks job
    cdef Walk walk
    cdef int ndim = prepare(x, axis, count, indices, &job, shape)
    if ndim < 0:
        return None
    result = new_empty(x.dtype, ndim, shape)
    put_operands(&operands, x, result, NULL, count, indices)
    walk_outer(&walk, x, result.strides, axis)
    if result.size < LARGE or not gather_steps(&operands, &walk, &job):
        compute_picks(&operands, &walk, run_gather, &job, result.size >= LARGE, True)
    return None if job.failed else result


cdef bint scatter(BaseArray x, int axis, int count, PyObject **indices,
                  BaseArray source, char *value) except -1:
    """Write `source`, or an element at `value` if that is None, to what indices select.

    Return False if the layouts or shapes don't allow it here, or an index is out of
    bounds: nothing is written then.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    cdef Operands operands
    cdef Picks job
    cdef Walk walk
    cdef Py_ssize_t size
    cdef bint independent
    cdef int i, ndim = prepare(x, axis, count, indices, &job, shape)
    if ndim < 0:
        return False
    for i in range(count):
        if touches(x, <BaseArray>indices[i]):
            return False
    job.constant = source is None or source.size == 1 and source.ndim <= ndim
    size = job.count * (job.nbytes // job.itemsize)
    fill_c_strides(ndim, shape, job.itemsize, strides)
    if not job.constant:
        if not has_shape(source, ndim, shape):
            source = spread(source, x.dtype, ndim, shape)
            if source is None:
                return False
        elif source.dtype != x.dtype or not source.c_contiguous or touches(x, source):
            source = in_c_order(source, x.dtype)
    elif source is not None and (source.dtype != x.dtype or touches(x, source)):
        source = in_c_order(source, x.dtype)
    put_operands(&operands, x, source, value, count, indices)
    walk_outer(&walk, x, strides, axis)
    independent = job.constant and has_distinct_elements(x)
    compute_picks(&operands, &walk, run_scatter, &job, size >= LARGE, independent)
    return not job.failed


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

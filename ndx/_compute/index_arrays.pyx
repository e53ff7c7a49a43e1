"""Elements selected by arrays of indices, read and written.

Indices become offsets in blocks, which are checked as a whole. Before anything is
written, all indices are checked. Another thread may change them afterwards; therefore
the offsets that are used are checked once more.

Threads share many indices, or the outer axes. Values are written in the order of their
indices, by one thread: the last of those for one place is kept.
"""

from cpython.object cimport PyObject
from libc.string cimport memcpy

from ndx._array.pinning cimport (
    Compute, Operands, compute_held, compute_on, put, put_constant,
)
from ndx._array.storage cimport BaseArray, has_shape, new_empty
from ndx._compute.aliasing cimport has_distinct_elements, touches
from ndx._compute.copies cimport LARGE, copy_into, in_c_order
from ndx._compute.masks cimport run_of
from ndx._compute.threads cimport parallel_for, thread_count
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport KIND_INT, KIND_UINT, itemsize_of, kind_of
from ndx._lib.layout cimport (
    MAXDIMS, Walk, broadcast_into, fill_c_strides, walk_merge,
)

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
    WORTHWHILE = 1 << 20     # bytes, or eight times the items, from which threads pay
    PART = 256 << 10         # bytes of a part, counted in the same way


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
    cdef Py_ssize_t start, n = 0
    cdef char *at[2]
    at[0] = data[0]
    at[1] = data[1]
    start_walk(walk.ndim, index)
    while True:
        start = 0
        while start < job.count:
            if n < job.count:
                # Offsets that fit in one block are computed once.
                n = min(BLOCK, job.count - start)
                if not offsets_of(job, data, start, n, offsets):
                    job.failed = True
                    return
            ndx_gather(at[1] + start * job.nbytes, at[0], offsets, n, job.nbytes,
                       job.unit)
            start += n
        if not step_walk(walk, walk.ndim, index, 2, at):
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
    cdef char *data[2 + MOST_INDICES]
    cdef Picks job
    cdef Walk walk
    cdef int i
    memcpy(&job, parts.job, sizeof(Picks))
    memcpy(&walk, parts.walk, sizeof(Walk))
    for i in range(2 + job.narrays):
        data[i] = parts.data[i]
    if walk.ndim:
        walk.shape[0] = min(parts.length, walk.shape[0] - start)
        data[0] += start * walk.strides[0][0]
        if not job.constant:
            data[1] += start * walk.strides[1][0]
    else:
        job.count = min(parts.length, job.count - start)
        if not job.constant:
            data[1] += start * job.nbytes
        for i in range(job.narrays):
            data[2 + i] += start * job.steps[i]
    parts.function(&job, data, &walk)
    if job.failed:
        ndx_raise_flag(&parts.job.failed)


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
        parts.length = max(PART // each, 1)
        parts.count = (length + parts.length - 1) // parts.length
        if length * each >= WORTHWHILE and parts.count > 1:
            parts.job = job
            parts.function = function
            return compute_held(operands, walk, run_parts, &parts)
    return compute_on(operands, walk, function, job, large)


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

"""Jobs: walks over several operands, which are cut into tiles."""

from ndx._array.pinning cimport Compute, Operands
from ndx._compute.aliasing cimport is_distinct
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk, magnitude, walk_merge


cdef Py_ssize_t walk_size(const Walk *walk) noexcept nogil:
    """Return the number of elements of a walk."""
    cdef Py_ssize_t size = 1
    cdef int axis
    for axis in range(walk.ndim):
        size *= walk.shape[axis]
    return size


cdef Py_ssize_t element_bytes(const Walk *walk,
                              const Py_ssize_t *itemsizes) noexcept nogil:
    """Return the bytes of one element of all operands that are not broadcast."""
    cdef Py_ssize_t nbytes = 0
    cdef int op, axis
    for op in range(walk.nops):
        for axis in range(walk.ndim):
            if walk.strides[op][axis] == 0 and walk.shape[axis] > 1:
                break
        else:
            nbytes += itemsizes[op]
    return nbytes


cdef void cut(Grid *grid, const Walk *walk, const Py_ssize_t *itemsizes,
              Py_ssize_t nbytes, int reduced, Py_ssize_t least) noexcept nogil:
    """Choose tiles of about `nbytes`, as compact in every operand as possible.

    Along the axes where operand `reduced` (-1: none) has stride 0, a tile has at least
    `least` elements in total, if the walk has as many.
    """
    cdef Py_ssize_t size = walk_size(walk), each = element_bytes(walk, itemsizes)
    cdef Py_ssize_t together = 1, extent, largest
    cdef int axis, op, chosen
    grid.ndim = walk.ndim
    for axis in range(walk.ndim):
        grid.shape[axis] = grid.tile[axis] = walk.shape[axis]
        if reduced >= 0 and walk.strides[reduced][axis] == 0:
            together *= walk.shape[axis]
    while size * each > nbytes:
        # Choose the axis along which a tile extends farthest in memory.
        chosen = -1
        largest = -1
        for axis in range(walk.ndim):
            if grid.tile[axis] == 1 or (
                    reduced >= 0 and walk.strides[reduced][axis] == 0
                    and together < 2 * least):
                continue
            for op in range(walk.nops):
                extent = grid.tile[axis] * magnitude(walk.strides[op][axis])
                if extent > largest:
                    largest = extent
                    chosen = axis
        if chosen < 0:
            break
        size //= grid.tile[chosen]
        together //= grid.tile[chosen] if reduced >= 0 \
            and walk.strides[reduced][chosen] == 0 else 1
        grid.tile[chosen] = (grid.tile[chosen] + 1) // 2
        size *= grid.tile[chosen]
        together *= grid.tile[chosen] if reduced >= 0 \
            and walk.strides[reduced][chosen] == 0 else 1
    count_tiles(grid)


cdef void cut_rows(Grid *grid, const Walk *walk, Py_ssize_t elements) noexcept nogil:
    """Choose tiles of about so many elements that follow each other in C order."""
    cdef int axis
    grid.ndim = walk.ndim
    for axis in range(walk.ndim - 1, -1, -1):
        grid.shape[axis] = walk.shape[axis]
        grid.tile[axis] = max(1, min(elements, walk.shape[axis]))
        # What is left for the outer axes: nothing, if this one is cut.
        elements = elements // grid.tile[axis] \
            if grid.tile[axis] == walk.shape[axis] else 1
    count_tiles(grid)


cdef void count_tiles(Grid *grid) noexcept nogil:
    """Set the number of tiles from their shape."""
    cdef int axis
    grid.total = 1
    grid.halvings = 0
    for axis in range(grid.ndim):
        grid.counts[axis] = (grid.shape[axis] + grid.tile[axis] - 1) // grid.tile[axis]
        grid.total *= grid.counts[axis]
        grid.steps[axis] = 0


cdef void find_place(const Grid *grid, Py_ssize_t index,
                     Py_ssize_t *place) noexcept nogil:
    """Set the index of a tile along each axis from its number."""
    cdef int axis
    for axis in range(grid.ndim - 1, -1, -1):
        place[axis] = index % grid.counts[axis]
        index //= grid.counts[axis]


cdef void find_tile(const Grid *grid, Py_ssize_t index, const Walk *walk, char **data,
                    Walk *tile, char **start) noexcept nogil:
    """Set the walk over one tile, and where it starts in each operand."""
    cdef Py_ssize_t place[MAXDIMS]
    cdef Py_ssize_t first
    cdef int axis, op
    tile.ndim = walk.ndim
    tile.nops = walk.nops
    for op in range(walk.nops):
        start[op] = data[op]
    find_place(grid, index, place)
    for axis in range(walk.ndim):
        first = place[axis] * grid.tile[axis]
        tile.shape[axis] = min(grid.tile[axis], grid.shape[axis] - first)
        if grid.halvings:
            first = halve(grid, index, &tile.shape[axis])
        for op in range(walk.nops):
            tile.strides[op][axis] = walk.strides[op][axis]
            start[op] += first * walk.strides[op][axis]
        start[0] += place[axis] * grid.steps[axis]


cdef Py_ssize_t first_half(Py_ssize_t count, bint two_parts) noexcept nogil:
    """Return the elements of the first half, as NumPy's pairwise sum divides them."""
    cdef Py_ssize_t half = count if two_parts else count // 2
    half -= half % 8
    return half // 2 if two_parts else half


cdef Py_ssize_t halve(const Grid *grid, Py_ssize_t index,
                      Py_ssize_t *length) noexcept nogil:
    """Return the first element of a tile of an axis that is halved; set its length."""
    cdef Py_ssize_t start = 0, count = grid.shape[0], half
    cdef int level
    for level in range(grid.halvings - 1, -1, -1):
        half = first_half(count, grid.two_parts)
        if index >> level & 1:
            start += half
            count -= half
        else:
            count = half
    length[0] = count
    return start


cdef void begin_job(Job *job, Operands *operands, const Walk *walk, Compute kernel,
                    void *arg) noexcept:
    """Set all of a job but the sizes of items."""
    job.operands = operands
    job.walk = walk
    job.kernel = kernel
    job.arg = arg
    job.written = <unsigned int>1 << (operands.count - 1)
    job.read = 0
    job.together = 1
    job.cycles = 0
    job.least = 0
    job.keeps_axes = job.by_rows = job.in_order = job.independent = False
    job.grid.total = 0


cdef void set_order(Job *job) noexcept:
    """Let a job be computed in order if the last of several values for one place stays.
    """
    cdef int op
    for op in range(job.walk.nops):
        if job.written >> op & 1 and not job.independent:
            job.in_order |= not is_distinct(job.walk.ndim, job.walk.shape,
                                            job.walk.strides[op], job.itemsizes[op])


cdef void run_kernel(const Job *job, char **data, Walk *walk) noexcept nogil:
    """Compute a tile, or a piece of one, at pointers to the operands of the walk."""
    cdef int op
    for op in range(walk.nops, job.operands.count):
        data[op] = job.data[op]
    if not job.keeps_axes:
        walk_merge(walk)
    job.kernel(job.arg, data, walk)


cdef void compute_tile(void *arg, Py_ssize_t index) noexcept nogil:
    """Compute one tile of a job on the operands' memory."""
    cdef const Job *job = <const Job *>arg
    cdef char *data[MAXOPS]
    cdef Walk tile
    find_tile(&job.grid, index, job.walk, job.data, &tile, data)
    run_kernel(job, data, &tile)


cdef Py_ssize_t span(const Walk *walk, int op, Py_ssize_t itemsize,
                     Py_ssize_t *low) noexcept nogil:
    """Return the bytes from an operand's lowest byte to its highest in a walk."""
    cdef Py_ssize_t high = itemsize
    cdef int axis
    low[0] = 0
    for axis in range(walk.ndim):
        if walk.strides[op][axis] < 0:
            low[0] += (walk.shape[axis] - 1) * walk.strides[op][axis]
        else:
            high += (walk.shape[axis] - 1) * walk.strides[op][axis]
    return high - low[0]


cdef void find_runs(Runs *runs, const Walk *walk, int op,
                    Py_ssize_t itemsize) noexcept nogil:
    """Find the runs of an operand; at least half of their bytes are elements."""
    cdef int order[MAXDIMS]
    cdef int axis, i, ndim = 0
    cdef Py_ssize_t stride
    for axis in range(walk.ndim):
        if walk.shape[axis] == 1 or walk.strides[op][axis] == 0:
            continue
        i = ndim
        while i > 0 and magnitude(walk.strides[op][order[i - 1]]) \
                > magnitude(walk.strides[op][axis]):
            order[i] = order[i - 1]
            i -= 1
        order[i] = axis
        ndim += 1
    runs.length = itemsize
    runs.low = 0
    runs.ndim = 0
    runs.count = 1
    for i in range(ndim):
        axis = order[i]
        stride = magnitude(walk.strides[op][axis])
        if runs.ndim == 0 and stride <= 2 * runs.length:
            runs.length += (walk.shape[axis] - 1) * stride
        else:
            runs.shape[runs.ndim] = walk.shape[axis]
            runs.strides[runs.ndim] = stride
            runs.ndim += 1
            runs.count *= walk.shape[axis]
        if walk.strides[op][axis] < 0:
            runs.low -= (walk.shape[axis] - 1) * stride


cdef Py_ssize_t run_start(const Runs *runs, Py_ssize_t index) noexcept nogil:
    """Return the offset of a run from the operand's first element."""
    cdef Py_ssize_t start = runs.low
    cdef int axis
    for axis in range(runs.ndim):
        start += index % runs.shape[axis] * runs.strides[axis]
        index //= runs.shape[axis]
    return start

"""Cutting a walk over several operands into tiles: pure arithmetic."""

from ndx._lib.layout cimport MAXDIMS, Walk, magnitude


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
    grid.total = 1
    for axis in range(walk.ndim):
        grid.counts[axis] = (grid.shape[axis] + grid.tile[axis] - 1) // grid.tile[axis]
        grid.total *= grid.counts[axis]


cdef void find_place(const Grid *grid, Py_ssize_t index,
                     Py_ssize_t *place) noexcept nogil:
    """Set the index of a tile along each axis from its number."""
    cdef int axis
    for axis in range(grid.ndim - 1, -1, -1):
        place[axis] = index % grid.counts[axis]
        index //= grid.counts[axis]


cdef void tile_walk(const Grid *grid, const Py_ssize_t *place, const Walk *walk,
                    Walk *out) noexcept nogil:
    """Set the walk over one tile: the tile's shape, the same strides."""
    cdef int axis, op
    out.ndim = walk.ndim
    out.nops = walk.nops
    for axis in range(walk.ndim):
        out.shape[axis] = min(grid.tile[axis],
                              grid.shape[axis] - place[axis] * grid.tile[axis])
        for op in range(walk.nops):
            out.strides[op][axis] = walk.strides[op][axis]


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

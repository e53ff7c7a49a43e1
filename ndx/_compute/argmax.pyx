"""`argmax` and `argmin`."""

from libc.math cimport isnan
from libc.stdint cimport (
    int16_t, int32_t, int64_t, int8_t, uint16_t, uint32_t, uint64_t, uint8_t,
)
from libc.string cimport memcpy, memset

from ndx._array.pinning cimport Operands, compute_on, put, put_constant
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport Transfer, copy_into, transfer_block
from ndx._compute.costs cimport LARGE
from ndx._compute.folds cimport Folding, run_fold
from ndx._compute.loops cimport Loop
from ndx._compute.sorting cimport SearchFunction, array_functions
from ndx._compute.tiles cimport PLACES
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    COMPLEX128, FLOAT32, FLOAT64, INT16, INT32, INT64, INT8, KIND_COMPLEX, UINT16,
    UINT32, UINT64, has_arithmetic, itemsize_of, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Walk, fill_c_strides, walk_merge, walk_order,
)


# ---- Of few elements -----------------------------------------------------------------

cdef struct Extreme:
    SearchFunction function
    void *sample
    Py_ssize_t count


cdef void find_extreme(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Extreme *search = <const Extreme *>arg
    search.function(data[0], search.count, <Py_ssize_t *>data[1], search.sample)


cdef bint find_small(BaseArray x, BaseArray found, bint largest) except -1:
    """Write the flat index of the largest or smallest element of `x` to `found`.

    Return False, and write nothing, unless `x` is contiguous and has few elements.
    """
    cdef Operands operands
    cdef Extreme search
    if not 0 < x.size < LARGE or not x.c_contiguous or kind_of[x.dtype] == KIND_COMPLEX:
        return False
    search.function = array_functions[x.dtype].argmax if largest \
        else array_functions[x.dtype].argmin
    if search.function == NULL:
        return False
    search.sample = array_functions[x.dtype].sample
    search.count = x.size
    operands.count = 0
    put(&operands, x)
    put(&operands, found)
    compute_on(&operands, NULL, find_extreme, &search, False)
    return True


# ---- Of many elements ----------------------------------------------------------------
# They are reductions to candidates: a place, and the element there. The first of equal
# ones counts, so that candidates may be combined in any order.

ctypedef fused Ordered:
    int64_t
    uint64_t
    float
    double

# The place is in C order, or along an axis; -1: there is no candidate yet.
cdef struct Candidate:
    int64_t place
    char[8] value

# The arguments of a search; operands are candidates, the array, and the places of its
# elements, which have no memory: `PLACES` is the address of the first one.
cdef struct Extremes:
    Folding folding              # the first: a pointer to it is a pointer to all
    Loop loop
    SearchFunction function
    void *sample
    int dtype
    bint largest

cdef enum:
    COPIED = 1024                # elements that are copied to be searched


cdef inline bint is_better(Ordered x, Ordered best, bint before,
                           bint largest) noexcept nogil:
    """Whether an element wins over another one; a NaN, unequal to itself, over all."""
    if Ordered is float or Ordered is double:
        if isnan(x) or isnan(best):
            return isnan(x) and (not isnan(best) or before)
    if x == best:
        return before
    return x > best if largest else x < best


cdef inline int64_t integer_at(const char *x, int dtype) noexcept nogil:
    if dtype == INT64:
        return (<const int64_t *>x)[0]
    if dtype == INT32:
        return (<const int32_t *>x)[0]
    if dtype == UINT32:
        return (<const uint32_t *>x)[0]
    if dtype == INT16:
        return (<const int16_t *>x)[0]
    if dtype == UINT16:
        return (<const uint16_t *>x)[0]
    if dtype == INT8:
        return (<const int8_t *>x)[0]
    return (<const uint8_t *>x)[0]


cdef void consider(const Extremes *search, const char *value, int64_t place,
                   Candidate *best) noexcept nogil:
    """Take an element as the candidate if it is better than the best so far."""
    cdef bint before = place < best.place, wins
    if best.place < 0:
        wins = True
    elif search.dtype == FLOAT64:
        wins = is_better((<const double *>value)[0], (<const double *>best.value)[0],
                         before, search.largest)
    elif search.dtype == FLOAT32:
        wins = is_better((<const float *>value)[0], (<const float *>best.value)[0],
                         before, search.largest)
    elif search.dtype == UINT64:
        wins = is_better((<const uint64_t *>value)[0],
                         (<const uint64_t *>best.value)[0], before, search.largest)
    else:
        wins = is_better(integer_at(value, search.dtype),
                         integer_at(best.value, search.dtype), before, search.largest)
    if wins:
        best.place = place
        memcpy(best.value, value, itemsize_of[search.dtype])


cdef void combine_candidates(char **args, const Py_ssize_t *counts,
                             const Py_ssize_t *steps, void *data) noexcept nogil:
    """Combine candidates, the second operand, with others, in the form of a loop."""
    cdef Candidate best
    cdef const Candidate *other
    cdef Py_ssize_t i
    for i in range(counts[0]):
        best = (<const Candidate *>(args[0] + i * steps[0]))[0]
        other = <const Candidate *>(args[1] + i * steps[1])
        if other.place >= 0:
            consider(<const Extremes *>data, other.value, other.place, &best)
        (<Candidate *>(args[2] + i * steps[2]))[0] = best


cdef void find_extremes(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Search operand 1 for candidates, operand 0."""
    cdef Extremes *search = <Extremes *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char[8 * COPIED] room
    cdef char *at[3]
    cdef char *x
    cdef int last = walk.ndim - 1, op
    cdef Py_ssize_t itemsize = itemsize_of[search.dtype], first, count, i
    cdef Py_ssize_t place = 0
    cdef Py_ssize_t length = walk.shape[last] if last >= 0 else 1
    cdef Py_ssize_t[3] step = [0, itemsize, 0]
    cdef Transfer how
    how.cast = NULL
    how.itemsize = itemsize
    for op in range(3):
        at[op] = data[op]
        if last >= 0:
            step[op] = walk.strides[op][last]
    start_walk(max(last, 0), index)
    while True:
        first = 0
        while first < length:
            if step[0] != 0:
                # Neighbours belong to different candidates.
                consider(search, at[1] + first * step[1],
                         at[2] - <char *>PLACES + first * step[2],
                         <Candidate *>(at[0] + first * step[0]))
                first += 1
                continue
            x = at[1] + first * step[1]
            count = length - first
            if step[1] != itemsize:
                count = min(count, <Py_ssize_t>COPIED)
                transfer_block(&how, room, 0, itemsize, x, 0, step[1], 1, count)
                x = room
            search.function(x, count, &place, search.sample)
            i = first + place
            consider(search, x + place * itemsize,
                     at[2] - <char *>PLACES + i * step[2], <Candidate *>at[0])
            first += count
        if not step_walk(walk, last, index, 3, at):
            return


cdef bint find_large(str name, BaseArray x, BaseArray found, int axis) except -1:
    """Write the places of extremes along an axis (-1: of all elements) to `found`.

    Return False, and write nothing, for what is left to NumPy.
    """
    cdef Py_ssize_t[3] itemsizes = [sizeof(Candidate), itemsize_of[x.dtype], 0]
    cdef Py_ssize_t places[MAXDIMS]
    cdef Py_ssize_t step
    cdef BaseArray candidates, view
    cdef Operands operands
    cdef Extremes search
    cdef Walk walk
    cdef int i, kept = 0
    search.largest = name == "argmax"
    search.dtype = x.dtype
    search.function = array_functions[x.dtype].argmax if search.largest \
        else array_functions[x.dtype].argmin
    search.sample = array_functions[x.dtype].sample
    if search.function == NULL or kind_of[x.dtype] == KIND_COMPLEX \
            or not has_arithmetic(x.dtype):
        return False
    candidates = new_empty(COMPLEX128, found.ndim, found.shape)
    fill_c_strides(x.ndim, x.shape, 1, places)
    # In the order of the array's memory, whatever that of the places.
    walk.nops = 3
    walk.ndim = x.ndim
    for i in range(x.ndim):
        walk.shape[i] = x.shape[i]
        walk.strides[0][i] = 0
        walk.strides[1][i] = places[i] if axis < 0 else i == axis
        walk.strides[2][i] = x.strides[i]
        if axis >= 0 and i != axis:
            walk.strides[0][i] = candidates.strides[kept]
            kept += 1
    walk_order(&walk)
    walk_merge(&walk)
    for i in range(walk.ndim):
        step = walk.strides[1][i]
        walk.strides[1][i] = walk.strides[2][i]
        walk.strides[2][i] = step
    search.loop.function = combine_candidates
    search.loop.data = &search
    search.loop.sum = NULL
    search.loop.in_dtype = search.loop.out_dtype = COMPLEX128
    search.folding.loop = &search.loop
    search.folding.run = find_extremes
    search.folding.itemsize = sizeof(Candidate)
    search.folding.any_order = True
    search.folding.decides = search.folding.two_parts = search.folding.begun = False
    search.folding.in_order = search.folding.may_overflow = False
    memset(search.folding.identity, 0xFF, sizeof(Candidate))
    operands.count = 0
    put(&operands, candidates)
    compute_on(&operands, NULL, start_candidates, <void *>candidates.size,
               candidates.size >= LARGE)
    put(&operands, x)
    put_constant(&operands, <char *>PLACES)
    run_fold(&search.folding, &operands, &walk, itemsizes, name)
    view = new_view(candidates, candidates.ndim)
    view.dtype = INT64
    memcpy(view.shape, candidates.shape, candidates.ndim * sizeof(Py_ssize_t))
    memcpy(view.strides, candidates.strides, candidates.ndim * sizeof(Py_ssize_t))
    set_layout(view)
    copy_into(found, view)
    return True


cdef void start_candidates(void *arg, char **data, const Walk *walk) noexcept nogil:
    memset(data[0], 0xFF, <Py_ssize_t>arg * sizeof(Candidate))

"""Sorting, distinct elements, and searches in sorted ones, on our memory.

What NumPy's functions compute better in C is left to them. Small results that NumPy
allocates itself are copied to our memory, which costs less than a change of NumPy's
allocator.
"""

cimport numpy as cnp
from libc.stdint cimport int64_t, uint16_t, uint32_t, uint64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from ndx._array.pinning cimport (
    Operands, begin_all, compute_on, end_all, hold, let_go, locate, put, put_constant,
    unlocked, view_of,
)
from ndx._array.storage cimport BaseArray, new_empty, new_view, require_live, set_layout
from ndx._compute.aliasing cimport has_distinct_elements
from ndx._compute.copies cimport Transfer, in_c_order, transfer_block
from ndx._compute.costs cimport LARGE
from ndx._compute.executor cimport run
from ndx._compute.passes.parts cimport sort_steps
from ndx._compute.tiles cimport Job, begin_job, cut_rows
from ndx._compute.walking cimport start_walk, step_walk
from ndx._files.mapping cimport find_mapping
from ndx._lib.dtypes cimport (
    BOOL, FLOAT32, FLOAT64, INT32, INT64, KIND_COMPLEX, KIND_FLOAT, NDTYPES, UINT32,
    UINT64, UINT8, dtype_object, has_arithmetic, itemsize_of, kind_of,
)
from ndx._lib.layout cimport MAXDIMS, Walk, walk_merge, walk_order

__all__ = ["unique_parts"]


# ---- NumPy's functions of dtypes -----------------------------------------------------
# They are public (``PyArray_ArrFuncs``). A call through an array takes as long as to
# sort a hundred elements.

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef enum NPY_SORTKIND:
        NPY_QUICKSORT
        NPY_STABLESORT

cdef extern from *:
    """
    #include <numpy/arrayobject.h>
    typedef int (*ndx_sort)(void *, npy_intp, void *);
    typedef int (*ndx_search)(void *, npy_intp, npy_intp *, void *);
    #define NDX_FUNCTIONS(x) PyDataType_GetArrFuncs(PyArray_DESCR((PyArrayObject *)x))
    static ndx_sort ndx_sort_of(PyObject *x, int kind) {
        return NDX_FUNCTIONS(x) == NULL ? NULL : NDX_FUNCTIONS(x)->sort[kind];
    }
    static ndx_search ndx_search_of(PyObject *x, int largest) {
        if (NDX_FUNCTIONS(x) == NULL) return NULL;
        return (ndx_search)(
            largest ? NDX_FUNCTIONS(x)->argmax : NDX_FUNCTIONS(x)->argmin);
    }
    """
    SortFunction ndx_sort_of(object array, int kind) noexcept
    SearchFunction ndx_search_of(object array, bint largest) noexcept

cdef list samples = []               # alive for ever


def _find():
    cdef int dtype
    for dtype in range(NDTYPES):
        sample = np.empty(0, dtype_object(dtype))
        samples.append(sample)
        array_functions[dtype].sample = <void *>sample
        array_functions[dtype].sort = ndx_sort_of(sample, NPY_QUICKSORT)
        array_functions[dtype].stable_sort = ndx_sort_of(sample, NPY_STABLESORT)
        array_functions[dtype].argmax = ndx_search_of(sample, True)
        array_functions[dtype].argmin = ndx_search_of(sample, False)


_find()


# ---- Lines sorted on threads ---------------------------------------------------------
# One long line is left to one thread: to merge two sorted halves takes longer than
# NumPy takes to sort one of them (measured, 10^6 elements).

cdef extern from "ndx/internal/thread_pool.h" nogil:
    void ndx_raise_flag(int *flag)

cdef enum:
    SORTED_PART = 1 << 14        # elements of lines that a thread takes at a time
    TOGETHER = 8                 # lines with gaps that are sorted in a buffer
    CYCLES = 1                   # of an element, for each halving of its line

# A sort of lines that have one step between their elements. A walk is over the lines.
cdef struct Sort:
    SortFunction sort
    void *sample
    Py_ssize_t itemsize
    Py_ssize_t length                # of a line
    Py_ssize_t step                  # bytes from element to element
    int failed                       # there was no memory; atomic


cdef void sort_lines(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Sort the lines that start at the places of operand 0."""
    cdef Sort *job = <Sort *>arg
    cdef int last = max(walk.ndim - 1, 0)
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t lines = walk.shape[last] if walk.ndim else 1
    cdef Py_ssize_t between = walk.strides[0][last] if walk.ndim else 0
    cdef Py_ssize_t nbytes = job.length * job.itemsize, first, count, i
    cdef Transfer how
    cdef char *room = NULL
    cdef char *line
    cdef char *at[1]
    cdef bint gaps = job.step != job.itemsize
    cdef bint bad = False
    at[0] = data[0]
    how.cast = NULL
    how.itemsize = job.itemsize
    if gaps:
        room = <char *>malloc(TOGETHER * nbytes)
        if room == NULL:
            ndx_raise_flag(&job.failed)
            return
    start_walk(last, index)
    while True:
        first = 0
        while first < lines:
            count = min(TOGETHER, lines - first)
            line = at[0] + first * between
            if gaps:
                transfer_block(&how, room, nbytes, job.itemsize, line, between,
                               job.step, count, job.length)
            for i in range(count):
                bad |= job.sort(room + i * nbytes if gaps else line + i * between,
                                job.length, job.sample) < 0
            if gaps:
                transfer_block(&how, line, between, job.step, room, nbytes,
                               job.itemsize, count, job.length)
            first += count
        if not step_walk(walk, last, index, 1, at):
            break
    if bad:
        ndx_raise_flag(&job.failed)
    free(room)


cdef bint begin_sort(Sort *job, Walk *walk, BaseArray x, int axis,
                     bint stable) noexcept:
    """Describe a sort, and set a walk over lines; return whether NumPy has a function.
    """
    cdef int i
    job.sort = array_functions[x.dtype].stable_sort if stable \
        else array_functions[x.dtype].sort
    job.sample = array_functions[x.dtype].sample
    job.itemsize = itemsize_of[x.dtype]
    job.length = x.shape[axis]
    job.step = x.strides[axis]
    job.failed = False
    walk.nops = 1
    walk.ndim = 0
    for i in range(x.ndim):
        if i != axis:
            walk.shape[walk.ndim] = x.shape[i]
            walk.strides[0][walk.ndim] = x.strides[i]
            walk.ndim += 1
    walk_order(walk)
    walk_merge(walk)
    return job.sort != NULL and kind_of[x.dtype] != KIND_COMPLEX


cdef bint sort_few(Operands *located, int axis, bint stable) except -1:
    """Sort operand 0, of few elements, in place; return whether that was done."""
    cdef BaseArray x = <BaseArray>located.arrays[0]
    cdef Sort job
    cdef Walk walk
    if not begin_sort(&job, &walk, x, axis, stable) or job.step != job.itemsize:
        return False
    sort_lines(&job, located.data, &walk)
    # Lines that are sorted can be sorted again.
    return not job.failed


cdef void set_lines(Job *job, Py_ssize_t length, int together) noexcept:
    """Cut a job whose walk is over lines, and estimate the time of their sort.

    A part has a multiple of `together` lines.
    """
    cdef Py_ssize_t lines = max(1, SORTED_PART // max(1, length))
    cdef int levels = 1, op
    while length >> levels:
        levels += 1
    job.cycles = <int>min(levels * length * CYCLES, <Py_ssize_t>1 << 30)
    for op in range(job.walk.nops):
        job.itemsizes[op] = 0
    cut_rows(&job.grid, job.walk, lines + (-lines & (together - 1)))


cdef bint sort_on_threads(Operands *held, int axis, bint stable) except -1:
    """Sort operand 0, which is held, in place; return whether that was done."""
    cdef BaseArray x = <BaseArray>held.arrays[0]
    cdef Sort sort
    cdef Walk walk
    cdef Job job
    if not begin_sort(&sort, &walk, x, axis, stable) or walk.ndim == 0:
        return False
    begin_job(&job, held, &walk, sort_lines, &sort)
    # Whole cache lines.
    set_lines(&job, sort.length, 1 if sort.step == sort.itemsize else TOGETHER)
    # Lines that share elements are for one thread.
    job.independent = has_distinct_elements(x)
    job.in_order = not job.independent
    run(&job, "sort")
    # Lines that are sorted can be sorted again.
    return not sort.failed


# ---- Arrays --------------------------------------------------------------------------

cdef extern from "numpy/arrayobject.h":
    ctypedef enum NPY_SEARCHSIDE:
        NPY_SEARCHLEFT
        NPY_SEARCHRIGHT
    int PyArray_Sort(cnp.ndarray array, int axis, NPY_SORTKIND kind) except -1
    ctypedef enum NPY_SELECTKIND:
        NPY_INTROSELECT
    cnp.ndarray PyArray_ArgPartition(cnp.ndarray array, cnp.ndarray places, int axis,
                                     NPY_SELECTKIND kind)
    cnp.ndarray PyArray_ArgSort(cnp.ndarray array, int axis, NPY_SORTKIND kind)
    cnp.ndarray PyArray_LexSort(object keys, int axis)
    int PyArray_Partition(cnp.ndarray array, cnp.ndarray places, int axis,
                          NPY_SELECTKIND kind) except -1
    cnp.ndarray PyArray_SearchSorted(
        cnp.ndarray array, object values, NPY_SEARCHSIDE side, void *sorter)


cdef extern from "ndx/internal/packed_argsort.h" nogil:
    bint ndx_differ(const char *x, Py_ssize_t n, Py_ssize_t itemsize)

# Arguments of a search for equal elements that differ in their bits.
cdef struct Difference:
    char *data
    Py_ssize_t count
    Py_ssize_t itemsize
    bint found


cdef void find_difference(void *arg) noexcept nogil:
    cdef Difference *search = <Difference *>arg
    search.found = ndx_differ(search.data, search.count, search.itemsize)


cdef bint order_shows(const Operands *held, BaseArray x) except -1:
    """Whether a stable sort may give other bits than NumPy's faster, unstable sort.

    It may if equal elements differ in their bits, as zeros of both signs and NaN do.
    `x` is operand 0, which is held.
    """
    cdef Difference search
    if kind_of[x.dtype] < KIND_FLOAT:
        return False
    if not x.c_contiguous or kind_of[x.dtype] != KIND_FLOAT:
        return True
    search.data = held.data[0]
    search.count = x.size
    search.itemsize = itemsize_of[x.dtype]
    search.found = False
    if x.size < LARGE:
        find_difference(&search)
    else:
        unlocked(held, find_difference, &search)
    return search.found


cdef int sort_in_place(BaseArray x, int axis, bint stable) except -1:
    """Sort along an axis; the caller has checked that `x` may be changed."""
    cdef Operands operands
    if x.shape[axis] < 2:
        require_live(x)
        return 0
    operands.count = 0
    put(&operands, x)
    if 0 < x.size < LARGE:
        begin_all(&operands)
        try:
            if sort_few(&operands, axis, stable and order_shows(&operands, x)):
                return 0
        finally:
            end_all(&operands)
    hold(&operands)
    try:
        if not sort_steps(&operands, axis):
            stable = stable and order_shows(&operands, x)
            if not sort_on_threads(&operands, axis, stable):
                PyArray_Sort(<cnp.ndarray>view_of(&operands, 0), axis,
                             NPY_STABLESORT if stable else NPY_QUICKSORT)
    finally:
        let_go(&operands)
    return 0


cdef BaseArray indices_of(cnp.ndarray found):
    """Return a copy of NumPy's indices, which lie in C order."""
    cdef Operands operands
    cdef BaseArray result = new_empty(
        INT64, found.ndim, <const Py_ssize_t *>found.shape)
    operands.count = 0
    put(&operands, result)
    begin_all(&operands)
    memcpy(operands.data[0], cnp.PyArray_DATA(found), cnp.PyArray_NBYTES(found))
    end_all(&operands)
    return result


cdef BaseArray sorting_indices(BaseArray x, int axis, bint stable):
    """Return the indices that sort a small array along an axis."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    try:
        found = PyArray_ArgSort(<cnp.ndarray>view_of(&operands, 0), axis,
                                NPY_STABLESORT if stable else NPY_QUICKSORT)
    finally:
        let_go(&operands)
    return indices_of(found)


cdef BaseArray sorting_by_keys(list keys):
    """Return the indices that sort small vectors of one length; the last comes first.
    """
    cdef Operands operands
    operands.count = 0
    for key in keys:
        put(&operands, <BaseArray>key)
    hold(&operands)
    try:
        found = PyArray_LexSort([view_of(&operands, i) for i in range(len(keys))], 0)
    finally:
        let_go(&operands)
    return indices_of(found)


cdef object partition(BaseArray x, Py_ssize_t place, bint indices):
    """Put the element of one place of a sorted vector there: smaller ones come before.

    With `indices`, return the indices that do so, and leave `x` as it is.
    """
    cdef Operands operands
    cdef cnp.npy_intp one = 1
    cdef cnp.ndarray places = cnp.PyArray_EMPTY(1, &one, cnp.NPY_INTP, 0)
    (<cnp.npy_intp *>cnp.PyArray_DATA(places))[0] = place
    operands.count = 0
    put(&operands, x)
    hold(&operands)
    found = None
    try:
        if indices:
            found = PyArray_ArgPartition(<cnp.ndarray>view_of(&operands, 0), places, 0,
                                         NPY_INTROSELECT)
        else:
            PyArray_Partition(<cnp.ndarray>view_of(&operands, 0), places, 0,
                              NPY_INTROSELECT)
    finally:
        let_go(&operands)
    return indices_of(found) if indices else None


cdef BaseArray places_in(BaseArray x, BaseArray values, bint right):
    """Return where a few values belong in a sorted vector."""
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    put(&operands, values)
    hold(&operands)
    try:
        found = PyArray_SearchSorted(
            <cnp.ndarray>view_of(&operands, 0), view_of(&operands, 1),
            NPY_SEARCHRIGHT if right else NPY_SEARCHLEFT, NULL)
    finally:
        let_go(&operands)
    return indices_of(found)


# ---- Indices that sort: integers made of keys and positions --------------------------
# Few different keys are counted instead. NumPy sorts integers in a fraction of the time
# in which it sorts indices. The order of equal elements is kept
# (`ndx/internal/packed_argsort.h`).

cdef extern from "ndx/internal/arithmetic.h" nogil:
    int ndx_highest_bit(size_t number)

cdef extern from "ndx/internal/packed_argsort.h" nogil:
    ctypedef struct Ranking "ndx_ranking":
        uint64_t low
        uint64_t high
        int shift
        int bits
        Py_ssize_t budget
    const Py_ssize_t NDX_INSERTED
    void ndx_insert(const char *x, Py_ssize_t step, char *out, Py_ssize_t out_step,
                    Py_ssize_t n, int dtype)
    void ndx_range(Ranking *job, const char *x, Py_ssize_t step, Py_ssize_t n,
                   int dtype)
    bint ndx_is_counted(const Ranking *job, Py_ssize_t n)
    void ndx_place(const Ranking *job, const char *x, Py_ssize_t step, char *out,
                   Py_ssize_t out_step, Py_ssize_t n, int dtype)
    void ndx_pack(const Ranking *job, const char *x, Py_ssize_t step, char *out,
                  Py_ssize_t out_step, Py_ssize_t n, int dtype)
    void ndx_unpack(Ranking *job, const char *x, Py_ssize_t step, char *out,
                    Py_ssize_t out_step, Py_ssize_t n, int dtype)

cdef enum:
    MOVES = 8                    # for each element, until another sort is taken

# Indices that sort lines. A walk is over the lines of operand 0, and over those of the
# indices, operand 1.
cdef struct Argsort:
    int dtype
    Py_ssize_t length            # of a line
    Py_ssize_t step              # bytes from element to element
    Py_ssize_t out_step          # the same, of indices
    int failed                   # too many keys are alike, or no memory; atomic


cdef bint order_line(const Argsort *job, const char *x, char *out) noexcept nogil:
    """Write indices, side by side, that sort a line of more than `NDX_INSERTED`.

    Return whether they were found.
    """
    cdef Py_ssize_t n = job.length
    cdef Ranking ranking
    cdef uint64_t spread
    ranking.low = ~<uint64_t>0
    ranking.high = 0
    ranking.bits = ndx_highest_bit(n | 1) + 1
    ranking.budget = MOVES * n
    ndx_range(&ranking, x, job.step, n, job.dtype)
    if ndx_is_counted(&ranking, n):
        ndx_place(&ranking, x, job.step, out, sizeof(int64_t), n, job.dtype)
        return True
    # Keys are shifted up as far as their range leaves room in 64 bits.
    spread = ranking.high - ranking.low
    ranking.shift = 63 - ndx_highest_bit(spread) if spread else ranking.bits
    ndx_pack(&ranking, x, job.step, out, sizeof(int64_t), n, job.dtype)
    if array_functions[INT64].sort(out, n, array_functions[INT64].sample) < 0:
        return False
    ndx_unpack(&ranking, x, job.step, out, sizeof(int64_t), n, job.dtype)
    return ranking.budget > 0


cdef void order_lines(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the indices that sort the lines of operand 0 to operand 1."""
    cdef Argsort *job = <Argsort *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t n = job.length, i
    cdef int last = walk.ndim
    cdef int64_t *room = NULL
    cdef char *at[2]
    cdef bint good = True
    at[0], at[1] = data[0], data[1]
    if n > NDX_INSERTED and job.out_step != sizeof(int64_t):
        # NumPy sorts integers side by side.
        room = <int64_t *>malloc(n * sizeof(int64_t))
        if room == NULL:
            ndx_raise_flag(&job.failed)
            return
    start_walk(last, index)
    while good:
        if n <= NDX_INSERTED:
            ndx_insert(at[0], job.step, at[1], job.out_step, n, job.dtype)
        elif room == NULL:
            good = order_line(job, at[0], at[1])
        else:
            good = order_line(job, at[0], <char *>room)
            for i in range(n):
                (<int64_t *>(at[1] + i * job.out_step))[0] = room[i]
        if not step_walk(walk, last, index, 2, at):
            break
    if not good:
        ndx_raise_flag(&job.failed)
    free(room)


cdef BaseArray ranked(BaseArray x, int axis):
    """Return the indices that sort an array of the CPU along an axis, stably.

    None: the dtype is another one, or too many keys are alike in their highest bits.
    """
    cdef BaseArray result
    cdef Operands operands
    cdef Argsort sort
    cdef Walk walk
    cdef Job job
    cdef int i
    if x.dtype not in (INT32, INT64, UINT32, UINT64, FLOAT32, FLOAT64) \
            or array_functions[INT64].sort == NULL:
        return None
    result = new_empty(INT64, x.ndim, x.shape)
    walk.nops = 2
    walk.ndim = 0
    for i in range(x.ndim):
        if i != axis:
            walk.shape[walk.ndim] = x.shape[i]
            walk.strides[0][walk.ndim] = x.strides[i]
            walk.strides[1][walk.ndim] = result.strides[i]
            walk.ndim += 1
    sort.dtype = x.dtype
    sort.length = x.shape[axis]
    sort.step = x.strides[axis]
    sort.out_step = result.strides[axis]
    sort.failed = False
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    begin_job(&job, &operands, &walk, order_lines, &sort)
    set_lines(&job, sort.length, 1)
    run(&job, "argsort")
    return None if sort.failed else result


# ---- Distinct elements ---------------------------------------------------------------

# Integers are equal if their bits are.
ctypedef fused Item:
    uint8_t
    uint16_t
    uint32_t
    uint64_t
    float
    double


cdef struct Distinct:
    Py_ssize_t count             # elements
    Py_ssize_t found             # different ones
    int dtype


cdef inline Py_ssize_t count_runs(const Item *x, const int64_t *order,
                                  Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, found = 1 if count else 0
    if order == NULL:
        for i in range(1, count):
            found += x[i] != x[i - 1]
    else:
        for i in range(1, count):
            found += x[order[i]] != x[order[i - 1]]
    return found


cdef inline void write_runs(const Item *x, Item *values, char **data,
                            Py_ssize_t count) noexcept nogil:
    cdef const int64_t *order = <const int64_t *>data[1]
    cdef int64_t *indices = <int64_t *>data[3]
    cdef int64_t *inverse = <int64_t *>data[4]
    cdef int64_t *counts = <int64_t *>data[5]
    cdef Py_ssize_t i, k = -1, at, first = 0
    for i in range(count):
        at = i if order == NULL else order[i]
        if i == 0 or x[at] != values[k]:
            if counts != NULL and k >= 0:
                counts[k] = i - first
            k += 1
            first = i
            values[k] = x[at]
            if indices != NULL:
                indices[k] = at
        if inverse != NULL:
            inverse[at] = k
    if counts != NULL and k >= 0:
        counts[k] = count - first


cdef void run_count(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Count the runs of operand 0, in the order of operand 1 if that is there."""
    cdef Distinct *job = <Distinct *>arg
    cdef const int64_t *order = <const int64_t *>data[1]
    cdef Py_ssize_t itemsize = itemsize_of[job.dtype]
    if job.dtype == FLOAT64:
        job.found = count_runs(<double *>data[0], order, job.count)
    elif job.dtype == FLOAT32:
        job.found = count_runs(<float *>data[0], order, job.count)
    elif itemsize == 8:
        job.found = count_runs(<uint64_t *>data[0], order, job.count)
    elif itemsize == 4:
        job.found = count_runs(<uint32_t *>data[0], order, job.count)
    elif itemsize == 2:
        job.found = count_runs(<uint16_t *>data[0], order, job.count)
    else:
        job.found = count_runs(<uint8_t *>data[0], order, job.count)


cdef void run_write(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the values, and what else is wanted, to operands 2 to 5."""
    cdef const Distinct *job = <const Distinct *>arg
    cdef Py_ssize_t itemsize = itemsize_of[job.dtype]
    if job.dtype == FLOAT64:
        write_runs(<double *>data[0], <double *>data[2], data, job.count)
    elif job.dtype == FLOAT32:
        write_runs(<float *>data[0], <float *>data[2], data, job.count)
    elif itemsize == 8:
        write_runs(<uint64_t *>data[0], <uint64_t *>data[2], data, job.count)
    elif itemsize == 4:
        write_runs(<uint32_t *>data[0], <uint32_t *>data[2], data, job.count)
    elif itemsize == 2:
        write_runs(<uint16_t *>data[0], <uint16_t *>data[2], data, job.count)
    else:
        write_runs(<uint8_t *>data[0], <uint8_t *>data[2], data, job.count)


cdef void put_or_not(Operands *operands, BaseArray x) noexcept:
    if x is None:
        put_constant(operands, NULL)
    else:
        put(operands, x)


cdef BaseArray flat_copy(BaseArray x):
    """Return a copy, which nobody else sees, with one axis."""
    cdef BaseArray view = x
    if x.dtype == BOOL:
        # In memory of others any byte may stand for True. The cast to bool makes it 1.
        view = new_view(x, x.ndim)
        memcpy(view.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
        memcpy(view.strides, x.strides, x.ndim * sizeof(Py_ssize_t))
        view.dtype = UINT8
        set_layout(view)
    view = new_view(in_c_order(view, x.dtype), 1)
    view.shape[0] = x.size
    view.strides[0] = itemsize_of[x.dtype]
    set_layout(view)
    return view


def unique_parts(BaseArray x not None, bint with_indices, bint with_inverse,
                 bint with_counts):
    """Return the distinct values, their indices, the inverse, and the counts.

    Parts that are not asked for are None. All is None for an array that is left to
    NumPy: complex, without arithmetic, on a device, or large and in a file.
    """
    cdef BaseArray flat, values, order = None, indices = None, inverse = None
    cdef BaseArray counts = None
    cdef Operands operands
    cdef Distinct job
    cdef bint large = x.size >= LARGE
    if x.block.device or kind_of[x.dtype] == KIND_COMPLEX or x.size == 0 \
            or not has_arithmetic(x.dtype):
        return None
    if large:
        operands.count = 0
        put(&operands, x)
        locate(&operands)
        if find_mapping(operands.data[0], NULL):
            return None
    flat = flat_copy(x)
    if with_indices or with_inverse:
        order = ranked(flat, 0)
        if order is None:
            if large:
                return None
            order = sorting_indices(flat, 0, True)
    else:
        sort_in_place(flat, 0, True)
    job.count = x.size
    job.dtype = x.dtype
    operands.count = 0
    put(&operands, flat)
    put_or_not(&operands, order)
    compute_on(&operands, NULL, run_count, &job, large)
    values = new_empty(x.dtype, 1, &job.found)
    if with_indices:
        indices = new_empty(INT64, 1, &job.found)
    if with_inverse:
        inverse = new_empty(INT64, x.ndim, x.shape)
    if with_counts:
        counts = new_empty(INT64, 1, &job.found)
    put(&operands, values)
    put_or_not(&operands, indices)
    put_or_not(&operands, inverse)
    put_or_not(&operands, counts)
    compute_on(&operands, NULL, run_write, &job, large)
    return values, indices, inverse, counts


# ---- Places in a sorted vector -------------------------------------------------------

cdef extern from "ndx/internal/search.h" nogil:
    Py_ssize_t ndx_ordered(const char *x, Py_ssize_t step, Py_ssize_t n, int dtype)
    void ndx_places(int64_t *out, const char *x, Py_ssize_t step, Py_ssize_t n,
                    Py_ssize_t ordered, const char *values, Py_ssize_t count,
                    bint right, int dtype)

cdef enum:
    SEARCH_CYCLES = 4                # of a step of a search

# A search of values, operand 1, in operand 0, the vector.
cdef struct Search:
    int dtype
    bint right
    Py_ssize_t step
    Py_ssize_t n
    Py_ssize_t ordered               # -1: not known yet


cdef void run_order(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Search *search = <Search *>arg
    search.ordered = ndx_ordered(data[0], search.step, search.n, search.dtype)


cdef void run_search(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the places of values to operand 2."""
    cdef Search *search = <Search *>arg
    if search.ordered < 0:
        run_order(arg, data, walk)
    ndx_places(<int64_t *>data[2], data[0], search.step, search.n, search.ordered,
               data[1], walk.shape[0], search.right, search.dtype)


cdef BaseArray search(BaseArray x, BaseArray values, bint right):
    """Return where values belong in a sorted vector; None: left to NumPy."""
    cdef BaseArray result
    cdef Operands operands
    cdef Search search
    cdef Walk walk
    cdef Job job
    cdef int levels = 1
    if x.dtype != values.dtype or kind_of[x.dtype] == KIND_COMPLEX or x.ndim != 1 \
            or not has_arithmetic(x.dtype):
        return None
    if not values.c_contiguous:
        values = in_c_order(values, values.dtype)
    result = new_empty(INT64, values.ndim, values.shape)
    search.dtype = x.dtype
    search.right = right
    search.step = x.strides[0]
    search.n = x.size
    search.ordered = -1
    operands.count = 0
    put(&operands, x)
    put(&operands, values)
    put(&operands, result)
    walk.ndim = 1
    walk.nops = 3
    walk.shape[0] = values.size
    walk.strides[0][0] = 0
    walk.strides[1][0] = itemsize_of[values.dtype]
    walk.strides[2][0] = sizeof(int64_t)
    if values.size < LARGE // 16:
        compute_on(&operands, &walk, run_search, &search, False)
        return result
    while x.size >> levels:
        levels += 1
    compute_on(&operands, &walk, run_order, &search, x.size >= LARGE)
    begin_job(&job, &operands, &walk, run_search, &search)
    job.itemsizes[0] = 0
    job.itemsizes[1] = itemsize_of[values.dtype]
    job.itemsizes[2] = sizeof(int64_t)
    job.keeps_axes = True
    job.cycles = levels * SEARCH_CYCLES
    run(&job, "searchsorted")
    return result

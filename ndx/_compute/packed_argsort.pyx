"""Indices that sort, by a sort of integers that are made of keys and positions.

Few different keys are counted instead. NumPy sorts integers in a fraction of the time
in which it sorts indices. The order of equal elements is kept
(`ndx/internal/packed_argsort.h`).
"""

cimport numpy as cnp
from libc.stdint cimport uint64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, hold, let_go, put, view_of
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport LARGE
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64
from ndx._lib.layout cimport MAXDIMS, Walk

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    ctypedef enum NPY_SORTKIND:
        NPY_QUICKSORT
    int PyArray_Sort(cnp.ndarray array, int axis, NPY_SORTKIND kind) except -1

cdef extern from "ndx/internal/arithmetic.h" nogil:
    int ndx_highest_bit(size_t number)

cdef extern from "ndx/internal/packed_argsort.h" nogil:
    ctypedef struct Ranking "ndx_ranking":
        uint64_t low
        uint64_t high
        int shift
        int bits
        Py_ssize_t budget
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

cdef enum Phase:
    RANGE
    PLACE
    PACK
    UNPACK


cdef struct Job:
    Ranking ranking
    Phase phase
    int dtype


cdef void run_phase(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Run one phase on operands 0 and 1, line by line along the last axis."""
    cdef Job *job = <Job *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[2]
    cdef int last = walk.ndim - 1
    cdef Py_ssize_t n = walk.shape[last]
    cdef Py_ssize_t step = walk.strides[0][last], out_step = walk.strides[1][last]
    at = [data[0], data[1]]
    start_walk(last, index)
    while True:
        if job.phase == RANGE:
            ndx_range(&job.ranking, at[0], step, n, job.dtype)
        elif job.phase == PLACE:
            ndx_place(&job.ranking, at[0], step, at[1], out_step, n, job.dtype)
        elif job.phase == PACK:
            ndx_pack(&job.ranking, at[0], step, at[1], out_step, n, job.dtype)
        else:
            ndx_unpack(&job.ranking, at[0], step, at[1], out_step, n, job.dtype)
        if not step_walk(walk, last, index, 2, at):
            return


cdef BaseArray ranked(BaseArray x, int axis):
    """Return the indices that sort an array of the CPU along an axis, stably.

    None: the dtype is another one, or too many keys are alike in their highest bits.
    """
    cdef BaseArray result
    cdef Operands operands
    cdef Walk walk
    cdef Job job
    cdef int i
    cdef bint large = x.size >= LARGE
    if x.dtype not in (INT32, INT64, UINT32, UINT64, FLOAT32, FLOAT64):
        return None
    result = new_empty(INT64, x.ndim, x.shape)
    if result.size == 0:
        return result
    walk.nops = 2
    walk.ndim = x.ndim
    memcpy(walk.shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], x.strides, x.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], result.strides, x.ndim * sizeof(Py_ssize_t))
    for i in range(axis, x.ndim - 1):
        walk.shape[i], walk.shape[i + 1] = walk.shape[i + 1], walk.shape[i]
        walk.strides[0][i], walk.strides[0][i + 1] = \
            walk.strides[0][i + 1], walk.strides[0][i]
        walk.strides[1][i], walk.strides[1][i + 1] = \
            walk.strides[1][i + 1], walk.strides[1][i]
    job.dtype = x.dtype
    job.ranking.low = ~<uint64_t>0
    job.ranking.high = 0
    job.ranking.bits = ndx_highest_bit(x.shape[axis] | 1) + 1
    job.ranking.budget = MOVES * x.size
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    hold(&operands)
    try:
        job.phase = RANGE
        compute_on(&operands, &walk, run_phase, &job, large)
        if ndx_is_counted(&job.ranking, x.shape[axis]):
            job.phase = PLACE
            compute_on(&operands, &walk, run_phase, &job, large)
            return result
        set_shift(&job.ranking)
        job.phase = PACK
        compute_on(&operands, &walk, run_phase, &job, large)
        if x.shape[axis] > 1:
            PyArray_Sort(<cnp.ndarray>view_of(&operands, 1), axis, NPY_QUICKSORT)
        job.phase = UNPACK
        compute_on(&operands, &walk, run_phase, &job, large)
    finally:
        let_go(&operands)
    return result if job.ranking.budget > 0 else None


cdef void set_shift(Ranking *ranking) noexcept:
    """Shift the keys up, as far as their range leaves room in 64 bits."""
    cdef uint64_t spread = ranking.high - ranking.low
    ranking.shift = 63 - ndx_highest_bit(spread) if spread else ranking.bits

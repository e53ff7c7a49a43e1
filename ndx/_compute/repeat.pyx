"""Elements repeated along an axis, for arrays of the CPU."""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport in_c_order
from ndx._compute.transfers cimport LARGE, transfer
from ndx._lib.dtypes cimport INT64, itemsize_of
from ndx._lib.layout cimport MAXDIMS, Walk, walk_merge

cdef extern from "ndx/internal/arithmetic.h":
    bint ndx_multiply(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) nogil


cdef BaseArray repeated(BaseArray x, Py_ssize_t count, int axis):
    """Return each element `count` times along an axis; None: the result is too long.

    The copies are one more axis, along which the operand does not move.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Walk walk
    cdef int i, ndim = x.ndim
    memcpy(shape, x.shape, ndim * sizeof(Py_ssize_t))
    if ndx_multiply(shape[axis], count, &shape[axis]):
        return None
    if ndim == MAXDIMS:
        return None
    result = new_empty(x.dtype, ndim, shape)
    if result.size == 0:
        return result
    walk.nops = 2
    walk.ndim = ndim + 1
    for i in range(ndim):
        walk.shape[i + (i > axis)] = x.shape[i]
        walk.strides[0][i + (i > axis)] = x.strides[i]
        walk.strides[1][i + (i > axis)] = result.strides[i]
    walk.shape[axis + 1] = count
    walk.strides[0][axis + 1] = 0
    walk.strides[1][axis + 1] = result.strides[axis]
    walk.strides[1][axis] *= count
    walk_merge(&walk)
    operands.count = 0
    put(&operands, x)
    put(&operands, result)
    transfer(&operands, &walk, x.dtype, x.dtype, "repeat")
    return result


# Items, each of some bytes, repeated as often as the counts say.
cdef struct Repeats:
    Py_ssize_t before            # how often the counts are gone through
    Py_ssize_t length            # counts
    size_t nbytes


cdef void run_repeats(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Write the items of operand 0 to operand 2, operand 1 times each."""
    cdef const Repeats *job = <const Repeats *>arg
    cdef const int64_t *counts = <const int64_t *>data[1]
    cdef char *x = data[0]
    cdef char *out = data[2]
    cdef Py_ssize_t i
    for _ in range(job.before):
        for i in range(job.length):
            for _ in range(counts[i]):
                if job.nbytes == 8:
                    memcpy(out, x, 8)
                else:
                    memcpy(out, x, job.nbytes)
                out += job.nbytes
            x += job.nbytes


cdef struct Total:
    Py_ssize_t length
    int64_t sum
    bint refused                 # a count is negative, or the sum is large


cdef void run_total(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef Total *total = <Total *>arg
    cdef const int64_t *counts = <const int64_t *>data[0]
    cdef Py_ssize_t i
    for i in range(total.length):
        if not 0 <= counts[i] <= LARGE:
            total.refused = True
        else:
            total.sum += counts[i]


cdef BaseArray repeated_each(BaseArray x, BaseArray counts, int axis):
    """Return each item along an axis of `x` as often as its count says.

    None: the result is large, or NumPy refuses it. The counts are int64, and nobody
    else can change them.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef Operands operands
    cdef Repeats job
    cdef Total total
    cdef int i
    if counts.ndim != 1 or not counts.c_contiguous or counts.dtype != INT64 \
            or counts.size != x.shape[axis] or counts.size >= LARGE or x.size >= LARGE:
        return None
    total.length = counts.size
    total.sum = 0
    total.refused = False
    operands.count = 0
    put(&operands, counts)
    compute_on(&operands, NULL, run_total, &total, False)
    if total.refused or total.sum >= LARGE:
        return None
    memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
    shape[axis] = total.sum
    if not x.c_contiguous:
        x = in_c_order(x, x.dtype)
    result = new_empty(x.dtype, x.ndim, shape)
    if result.size == 0:
        return result
    job.before = 1
    job.length = counts.size
    job.nbytes = itemsize_of[x.dtype]
    for i in range(axis):
        job.before *= x.shape[i]
    for i in range(axis + 1, x.ndim):
        job.nbytes *= x.shape[i]
    operands.count = 0
    put(&operands, x)
    put(&operands, counts)
    put(&operands, result)
    compute_on(&operands, NULL, run_repeats, &job, False)
    return result

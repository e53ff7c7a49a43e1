"""Cumulative results of small arrays, by NumPy's loops."""

from libc.string cimport memcmp, memcpy, memset

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport LARGE
from ndx._compute.loops cimport Loop, Ufunc, loop_of
from ndx._compute.numpy_private cimport reporting, reports
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport BOOL, NDTYPES, itemsize_of, store_scalar
from ndx._lib.layout cimport MAXDIMS, Walk

# The layout of one line, and its loop.
cdef struct Line:
    const Loop *loop
    Py_ssize_t count
    Py_ssize_t step
    Py_ssize_t out_step
    Py_ssize_t itemsize


cdef void run_line(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute operand 1 from operand 0: out[i] = out[i - 1] op x[i], as NumPy does.

    A loop whose first operand and output are one element apart computes in order.
    """
    cdef const Line *line = <const Line *>arg
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef Py_ssize_t count = line.count - 1
    memcpy(data[1], data[0], line.itemsize)
    if count == 0:
        return
    args[0] = data[1]
    args[1] = data[0] + line.step
    args[2] = data[1] + line.out_step
    steps[0] = line.out_step
    steps[1] = line.step
    steps[2] = line.out_step
    line.loop.function(args, &count, steps, line.loop.data)


cdef void run_lines(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Compute operand 1 from operand 0 along the last axis of a walk."""
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[2]
    cdef int last = walk.ndim - 1
    at = [data[0], data[1]]
    start_walk(last, index)
    while True:
        run_line(arg, at, NULL)
        if not step_walk(walk, last, index, 2, at):
            return


cdef enum:
    TRIAL = 40                   # elements of a trial: more than a SIMD vector has

# Whether the loop of a dtype computes in order: 1 yes, -1 no, 0 not known yet.
cdef signed char[NDTYPES] adds
cdef signed char[NDTYPES] multiplies


cdef bint is_in_order(Ufunc ufunc, const Loop *loop, int dtype) except -1:
    """Whether a loop computes each element after it has written the one before.

    A loop that copies its operands first (`_compute.loop_checks`) does not.
    """
    cdef signed char *known
    cdef char[TRIAL * 16] values
    cdef char[TRIAL * 16] found
    cdef char[16] wanted
    cdef char *data[2]
    cdef Line line
    cdef int i
    if ufunc.name != "add" and ufunc.name != "multiply":
        return False
    known = &adds[dtype] if ufunc.name == "add" else &multiplies[dtype]
    if known[0] == 0:
        line.loop = loop
        line.count = TRIAL
        line.step = line.out_step = line.itemsize = itemsize_of[dtype]
        memset(found, 0, sizeof(found))
        for i in range(TRIAL):
            store_scalar(1 if i or ufunc.name == "add" else 3, dtype,
                         values + i * line.itemsize)
        data[0] = values
        data[1] = found
        run_line(&line, data, NULL)
        known[0] = 1
        for i in range(TRIAL):
            store_scalar(i + 1 if ufunc.name == "add" else 3, dtype, wanted)
            if memcmp(found + i * line.itemsize, wanted, line.itemsize):
                known[0] = -1
    return known[0] > 0


cdef inline void append(Walk *walk, BaseArray x, BaseArray out, int axis) noexcept:
    """Append an axis of two arrays to a walk."""
    walk.shape[walk.ndim] = x.shape[axis]
    walk.strides[0][walk.ndim] = x.strides[axis]
    walk.strides[1][walk.ndim] = out.strides[axis]
    walk.ndim += 1


cdef bint accumulate_small(Ufunc ufunc, BaseArray x, BaseArray out, int axis) except -1:
    """Write the cumulative results of a small array to `out`, of the same dtype.

    Return False, and write nothing, for other arrays.
    """
    cdef const Loop *loop
    cdef Operands operands
    cdef Walk walk
    cdef Line line
    cdef int i
    if x.size >= LARGE or x.dtype != out.dtype \
            or x.dtype == BOOL or reporting != 0 and reports():
        return False
    loop = loop_of(ufunc, x.dtype)
    if loop.function == NULL or loop.in_dtype != x.dtype or loop.out_dtype != x.dtype:
        return False
    if not is_in_order(ufunc, loop, x.dtype):
        return False
    if x.size == 0:
        return True
    line.loop = loop
    line.count = x.shape[axis]
    line.step = x.strides[axis]
    line.out_step = out.strides[axis]
    line.itemsize = itemsize_of[x.dtype]
    operands.count = 0
    put(&operands, x)
    put(&operands, out)
    walk.nops = 2
    walk.ndim = 0
    for i in range(x.ndim + 1):
        # The axis is the last one.
        if i != axis:
            append(&walk, x, out, i if i < x.ndim else axis)
    compute_on(&operands, &walk, run_lines, &line, False)
    return True

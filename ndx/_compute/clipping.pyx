"""Elements limited to an interval, in one pass."""

from libc.string cimport memcpy

import numpy as np

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport (
    BaseArray, as_number, has_shape, holds_number, is_array, new_like, require_live,
)
from ndx._compute.aliasing cimport overlaps
from ndx._compute.copies cimport LARGE, store_constant
from ndx._compute.elementwise cimport is_scalar
from ndx._compute.passes.run cimport run_large
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    BOOL, FLOAT64, KIND_FLOAT, dtype_object, itemsize_of, kind_of, scalar_dtype,
)
from ndx._lib.layout cimport MAXDIMS, Walk, walk_merge, walk_order

cdef extern from "ndx/internal/choose.h" nogil:
    void ndx_clip(char **args, Py_ssize_t rows, const Py_ssize_t *row_steps,
                  Py_ssize_t n, const Py_ssize_t *steps, const char *low,
                  const char *high, int dtype)


# Elements of the dtype.
cdef struct Bounds:
    double[2] low                    # the bytes of an element, aligned for any dtype
    double[2] high
    int dtype


cdef void run_clip(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Clip operand 0 into operand 1. Rows may be short: two axes are one call."""
    cdef const Bounds *bounds = <const Bounds *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t row_steps[2]
    cdef Py_ssize_t steps[2]
    cdef Py_ssize_t rows = 1, n = 1
    cdef int op, last = walk.ndim - 1
    cdef char *at[2]
    for op in range(2):
        at[op] = data[op]
        steps[op] = walk.strides[op][last] if last >= 0 else 0
        row_steps[op] = walk.strides[op][last - 1] if last >= 1 else 0
    if last >= 0:
        n = walk.shape[last]
    if last >= 1:
        rows = walk.shape[last - 1]
    start_walk(last - 1, index)
    while True:
        ndx_clip(at, rows, row_steps, n, steps, <const char *>bounds.low,
                 <const char *>bounds.high, bounds.dtype)
        if not step_walk(walk, last - 1, index, 2, at):
            return


cdef int store_bound(object value, int dtype, bint is_low, char *bound) except -1:
    """Store a bound as an element; an integer beyond the dtype becomes its last one.

    Such an integer limits nothing. One that would limit all elements to a value which
    the dtype lacks is an OverflowError.
    """
    try:
        store_constant(value, dtype, bound)
    except OverflowError:
        if kind_of[dtype] >= KIND_FLOAT:
            raise
        limits = np.iinfo(dtype_object(dtype))
        value = max(value, limits.min) if is_low else min(value, limits.max)
        store_constant(value, dtype, bound)
    return 0


def binding_bounds(x, low, high):
    """Return both bounds, with None for an integer that limits no element."""
    if is_array(x) and BOOL != (<BaseArray>x).dtype \
            and kind_of[(<BaseArray>x).dtype] < KIND_FLOAT:
        limits = np.iinfo(dtype_object((<BaseArray>x).dtype))
        if isinstance(low, int) and low < limits.min:
            low = None
        if isinstance(high, int) and high > limits.max:
            high = None
    return low, high


cpdef object clip_between(object x, object low, object high, object out):
    """Return an array limited to two scalars of its dtype; None for other operands.

    NaN stays. Elements become `high` where `low` is larger than `high`. The result is
    written to `out`, unless that is None.
    """
    cdef BaseArray array, result
    cdef Operands operands
    cdef Py_ssize_t itemsizes[2]
    cdef Bounds bounds
    cdef Walk walk
    if not is_array(x) or not is_scalar(low) or not is_scalar(high) \
            or isinstance(low, complex) or isinstance(high, complex):
        return None
    array = x
    if array.block.device or array.dtype == BOOL or array.dtype > FLOAT64 \
            or scalar_dtype(array.dtype, low) != array.dtype \
            or scalar_dtype(array.dtype, high) != array.dtype \
            or low != low or high != high:
        return None
    bounds.dtype = array.dtype
    store_bound(low, array.dtype, True, <char *>bounds.low)
    store_bound(high, array.dtype, False, <char *>bounds.high)
    require_live(array)
    if out is not None:
        if not is_array(out):
            return None
        result = out
        if result.block.device or result.readonly or result.dtype != array.dtype \
                or not has_shape(result, array.ndim, array.shape) \
                or overlaps(result, array):
            return None
    else:
        result = new_like(array, array.dtype)
    if result.size == 0:
        return result
    walk.nops = 2
    walk.ndim = array.ndim
    memcpy(walk.shape, array.shape, walk.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[0], array.strides, walk.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], result.strides, walk.ndim * sizeof(Py_ssize_t))
    walk_order(&walk)
    walk_merge(&walk)
    operands.count = 0
    put(&operands, array)
    put(&operands, result)
    if result.size >= LARGE:
        itemsizes[0] = itemsizes[1] = itemsize_of[array.dtype]
        run_large(&operands, &walk, itemsizes, run_clip, &bounds, "clip", False)
    else:
        compute_on(&operands, &walk, run_clip, &bounds, False)
    return as_number(result) if out is None and holds_number(array) else result

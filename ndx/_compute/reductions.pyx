"""Reductions: the elements along axes, combined by a binary operation."""

import numpy as np

from ndx._array.pinning cimport (
    Operands, compute_held, compute_on, hold, let_go, put, view_of,
)
from ndx._array.storage cimport BaseArray, new_empty, new_view, require_live, set_layout
from ndx._compute.copies cimport LARGE, copy_into, fill
from ndx._compute.folds cimport (
    Folding, any_infinite, fold, fold_parts, is_in_order, may_overflow,
)
from ndx._compute.loops cimport Loop, Ufunc, loop_of
from ndx._compute.numpy_private cimport reporting, reports, restore, silence
from ndx._compute.passes.run cimport Pass, begin, run
from ndx._compute.broadcast_reductions cimport combinable, combined, distinct
from ndx._lib.dtypes cimport (
    BOOL, KIND_COMPLEX, KIND_FLOAT, dtype_object, itemsize_of, kind_of, store_scalar,
)
from ndx._lib.layout cimport (
    MAXDIMS, Walk, parse_axes, read_axes, shape_tuple, walk_merge, walk_order,
)

# The name of the reduction by an operation.
cdef dict NAMES = {
    "add": "sum", "logical_and": "all", "logical_or": "any", "maximum": "max",
    "minimum": "min", "multiply": "prod",
}


cdef BaseArray reduce(Ufunc ufunc, BaseArray x, object axis, bint keepdims):
    """Combine the elements along axes (None: all) by a binary operation.

    `x` already has the dtype of the result. Empty axes give the operation's identity.
    `maximum` and `minimum` have none, and raise ValueError.
    """
    cdef bint chosen[MAXDIMS]
    cdef const Loop *loop = loop_of(ufunc, x.dtype)
    cdef BaseArray result
    cdef Py_ssize_t count
    axis = read_axes(axis)
    count = combinable(ufunc, x.dtype, x, axis)
    if count > 1:
        return combined(ufunc, reduce(ufunc, distinct(x, axis), axis, keepdims), count)
    parse_axes(axis, x.ndim, chosen)
    require_live(x)
    result = new_reduced(x, x.dtype, chosen, keepdims)
    start(ufunc, result, x, chosen)
    if x.size:
        reduce_into(result, ufunc, loop, x, chosen, keepdims)
    return result


cdef BaseArray new_reduced(BaseArray x, int dtype, const bint *chosen, bint keepdims):
    """Return a new array for the result of reducing the chosen axes of `x`."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int i, ndim = 0
    for i in range(x.ndim):
        if not chosen[i]:
            shape[ndim] = x.shape[i]
            ndim += 1
        elif keepdims:
            shape[ndim] = 1
            ndim += 1
    return new_empty(dtype, ndim, shape)


cdef int reduce_into(BaseArray result, Ufunc ufunc, const Loop *loop, BaseArray x,
                     bint *chosen, bint keepdims) except -1:
    """Combine the elements of `x` with those of `result`."""
    cdef Operands operands
    cdef Folding folding
    cdef Walk walk
    cdef int i, kept = 0
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    if loop.function == NULL or reporting != 0 and reports():
        return reduce_public(ufunc, &operands, x.ndim, chosen, keepdims)
    # The result's strides, by axis of x; the walk reads x in memory order.
    walk.ndim = x.ndim
    walk.nops = 2
    for i in range(x.ndim):
        walk.shape[i] = x.shape[i]
        walk.strides[1][i] = x.strides[i]
        walk.strides[0][i] = 0 if chosen[i] else result.strides[kept]
        kept += keepdims or not chosen[i]
    walk_order(&walk)
    walk_merge(&walk)
    folding.loop = loop
    folding.run = fold
    folding.itemsize = itemsize_of[x.dtype]
    folding.two_parts = kind_of[x.dtype] == KIND_COMPLEX
    # The loops of bools are the slowest on columns.
    folding.any_order = x.dtype != BOOL and (kind_of[x.dtype] < KIND_FLOAT or (
        ufunc.name != "add" and ufunc.name != "multiply"))
    folding.in_order = is_in_order(ufunc, x.dtype)
    folding.may_overflow = may_overflow(ufunc, x.dtype)
    if x.size < LARGE:
        return compute_on(&operands, &walk, fold, &folding, False)
    folding.decides = x.dtype == BOOL and (
        ufunc.name == "logical_and" or ufunc.name == "logical_or")
    folding.failed = False
    store_scalar(identity(ufunc, x.dtype), x.dtype, <char *>folding.identity)
    hold(&operands)
    try:
        if not reduce_in_pass(ufunc, &folding, &operands, &walk, x.dtype):
            compute_held(&operands, &walk, fold_parts, &folding)
    finally:
        let_go(&operands)
    if folding.failed:
        raise MemoryError("no memory for the partial results of a reduction")
    return 0


cdef bint reduce_in_pass(Ufunc ufunc, Folding *folding, Operands *held,
                         const Walk *walk, int dtype) except -1:
    """Reduce in a pass if the array is large and in a file; return whether it is.

    Each tile is reduced to partial results: a row for each element of the result. The
    rows are then reduced in order, so that the result does not depend on threads. What
    has to be in order is reduced by one thread, if reduced axes are cut.
    """
    cdef Pass job
    cdef Operands partials
    cdef Walk rows
    cdef BaseArray partial
    cdef Py_ssize_t itemsize = itemsize_of[dtype], count = 1, kept = 1, step, size
    cdef Py_ssize_t[2] itemsizes = [itemsize, itemsize]
    cdef int axis
    cdef bint overflow
    if not begin(&job, held, walk, itemsizes, 0):
        return False
    job.compute = fold
    job.arg = folding
    for axis in range(walk.ndim):
        if walk.strides[0][axis] == 0:
            count *= job.grid.counts[axis]
        else:
            kept *= walk.shape[axis]
    if count > 1 and folding.in_order:
        job.threads = 1
        job.first = 0
    if count == 1 or folding.in_order:
        run(&job, NAMES[ufunc.name])
        return True
    # Axes of the partial results: the kept axes in the walk's order, then the tiles.
    size = kept * count
    partial = new_empty(dtype, 1, &size)
    fill(partial, identity(ufunc, dtype))
    rows.ndim = 0
    rows.nops = 2
    step = itemsize
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] == 0:
            job.ops[0].steps[axis] = step
            step *= job.grid.counts[axis]
    for axis in range(walk.ndim - 1, -1, -1):
        if walk.strides[0][axis] != 0:
            job.walk.strides[0][axis] = step
            job.ops[0].steps[axis] = step * job.grid.tile[axis]
            step *= walk.shape[axis]
    for axis in range(walk.ndim):
        if walk.strides[0][axis] != 0:
            rows.shape[rows.ndim] = walk.shape[axis]
            rows.strides[0][rows.ndim] = walk.strides[0][axis]
            rows.strides[1][rows.ndim] = job.walk.strides[0][axis]
            rows.ndim += 1
    rows.shape[rows.ndim] = count
    rows.strides[0][rows.ndim] = 0
    rows.strides[1][rows.ndim] = itemsize
    rows.ndim += 1
    # All three are held. The pass writes to the partial results, operand 1.
    partials.count = 0
    put(&partials, <BaseArray>held.arrays[0])
    put(&partials, partial)
    put(&partials, <BaseArray>held.arrays[1])
    hold(&partials)
    try:
        job.held = &partials
        job.ops[0].data = partials.data[1]
        job.ops[0].mapped = False
        run(&job, NAMES[ufunc.name])
        overflow = folding.may_overflow and any_infinite(
            folding, partials.data[1], size * itemsize)
        if not overflow:
            compute_held(&partials, &rows, fold, folding)
    finally:
        let_go(&partials)
    if overflow:
        begin(&job, held, walk, itemsizes, 0)
        job.compute = fold
        job.arg = folding
        job.threads = 1
        job.first = 0
        run(&job, NAMES[ufunc.name])
    return True


cdef object identity(Ufunc ufunc, int dtype):
    """Return the identity element of an operation."""
    cdef bint is_complex = kind_of[dtype] == KIND_COMPLEX
    if ufunc.name == "add":
        # Adding -0.0 changes no float, not even -0.0.
        if is_complex:
            return complex(-0.0, -0.0)
        return -0.0 if kind_of[dtype] >= KIND_FLOAT else 0
    if ufunc.name == "multiply" or ufunc.name == "logical_and":
        return 1
    if ufunc.name == "logical_or" or dtype == BOOL:
        return ufunc.name == "minimum"
    if kind_of[dtype] >= KIND_FLOAT:
        extreme = float("inf" if ufunc.name == "minimum" else "-inf")
        # Equal real parts are ordered by the imaginary ones.
        return complex(extreme, extreme) if is_complex else extreme
    limits = np.iinfo(dtype_object(dtype))
    return limits.max if ufunc.name == "minimum" else limits.min


cdef int start(Ufunc ufunc, BaseArray result, BaseArray x,
               const bint *chosen) except -1:
    """Write the initial values of a reduction to `result`."""
    cdef BaseArray first
    cdef int i, kept = 0
    cdef bint empty = False
    for i in range(x.ndim):
        empty = empty or (chosen[i] and x.shape[i] == 0)
    if ufunc.name != "minimum" and ufunc.name != "maximum":
        fill(result, 0 if empty and ufunc.name == "add" else identity(ufunc, x.dtype))
    elif empty:
        raise ValueError(
            f"an array of shape {shape_tuple(x.ndim, x.shape)} has no {ufunc.name} "
            "along an axis of length 0, for which there is no identity")
    elif result.size:
        first = new_view(x, result.ndim)
        for i in range(x.ndim):
            if not chosen[i]:
                first.shape[kept] = x.shape[i]
                first.strides[kept] = x.strides[i]
                kept += 1
            elif result.ndim == x.ndim:
                first.shape[kept] = 1
                first.strides[kept] = x.strides[i]
                kept += 1
        set_layout(first)
        copy_into(result, first)
    return 0


cdef int reduce_public(Ufunc ufunc, Operands *operands, int ndim, bint *chosen,
                       bint keepdims) except -1:
    axes = tuple([i for i in range(ndim) if chosen[i]])
    token = silence()
    try:
        hold(operands)
        try:
            ufunc.public.reduce(view_of(operands, 1), axis=axes, keepdims=keepdims,
                                out=view_of(operands, 0))
        finally:
            let_go(operands)
    finally:
        restore(token)
    return 0

"""Reductions: the elements along axes, combined by a binary operation."""

from libc.string cimport memcpy

import numpy as np

from ndx._array.pinning cimport (
    Operands, compute_held, compute_on, hold, let_go, put, view_of,
)
from ndx._array.storage cimport (
    BaseArray, new_empty, new_view, require_live, same_view, set_layout, strided,
)
from ndx._compute.copies cimport (
    LARGE, Transfer, can_transfer, cast, cast_between, copy_into, fill,
    require_castable, transfer_block,
)
from ndx._compute.elementwise cimport binary, inplace
from ndx._compute.folds cimport (
    Folding, any_infinite, combine, first_half, fold, fold_parts, is_in_order,
    may_overflow,
)
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, run_short
from ndx._compute.numpy_private cimport reporting, reports, restore, silence
from ndx._compute.passes.run cimport Pass, begin, run
from ndx._compute.passes.settings cimport settings
from ndx._compute.walking cimport start_walk, step_walk
from ndx._files.mapping cimport Mapped, find_mapping
from ndx._lib.dtypes cimport (
    BOOL, KIND_COMPLEX, KIND_FLOAT, dtype_object, has_arithmetic, itemsize_of, kind_of,
    store_scalar,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, parse_axes, read_axes, shape_tuple, walk_merge, walk_order,
)


# ---- Along broadcast axes (stride 0) -------------------------------------------------
# Such a view may be too long for any loop. A reduction takes one of the equal elements
# and combines copies of it by doubling.

cdef enum:
    IN_ORDER = 1 << 28           # elements that are reduced in less than a second


cdef Py_ssize_t repeats(BaseArray x, object axis) except -1:
    """Return how often each element is repeated along the axes (None: all)."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t count = 1
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        # Arrays without elements may have other strides.
        if chosen[i] and x.strides[i] == 0:
            count *= x.shape[i]
    return count


cdef Py_ssize_t combinable(Ufunc ufunc, int dtype, BaseArray x, object axis) except -1:
    """Return how many copies of each element a reduction may combine by doubling.

    It is 1 for operations whose result depends on the order of the elements, unless
    these are so many that a reduction in order would take too long.
    """
    return 1 if is_in_order(ufunc, dtype) and x.size <= IN_ORDER else repeats(x, axis)


cdef BaseArray distinct(BaseArray x, object axis):
    """Return a view in which the repeated axes have length 1."""
    cdef bint chosen[MAXDIMS]
    cdef BaseArray view = same_view(x)
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        if chosen[i] and x.strides[i] == 0:
            view.shape[i] = 1
    set_layout(view)
    return view


cdef BaseArray combined(Ufunc ufunc, BaseArray x, Py_ssize_t count):
    """Return `count` (1 or more) copies of `x`, combined by an operation.

    Doubling makes sums as exact as pairwise ones.
    """
    cdef BaseArray total = None, power = x
    if ufunc.name != "add" and ufunc.name != "multiply":
        # The operation is idempotent.
        return x
    while True:
        if count & 1:
            total = power if total is None else binary(ufunc, total, power, None)
        count >>= 1
        if count == 0:
            return total
        power = binary(ufunc, power, power, None)


# ---- Of elements ---------------------------------------------------------------------

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
    if loop.function == NULL or not has_arithmetic(x.dtype) \
            or reporting != 0 and reports():
        # Parts of a sum would be rounded each for itself.
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


# ---- Of values that are computed from elements, block by block -----------------------
# The values are the elements in another dtype, or the squares of their distances from a
# mean. They stay in a block that fits in the processor's first cache; NumPy writes all
# distances to memory, then their squares. One contiguous stretch is halved as NumPy's
# pairwise sum halves it, so that a sum of squares is NumPy's, to the last bit.

cdef enum:
    BLOCK = 1024                 # elements computed together

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SUBTRACT = find_ufunc("subtract")

# A reduction of computed values. Operands are the result, the array, and its means.
cdef struct Computing:
    Folding folding              # the first: a pointer to it is a pointer to all
    Transfer conversion          # `cast` is NULL if the dtype stays
    const Loop *subtract         # NULL: the elements themselves are reduced
    const Loop *multiply


cdef BaseArray reduce_as(Ufunc ufunc, BaseArray x, int dtype, object axis,
                         bint keepdims):
    """Combine the elements, converted to a dtype, along axes (None: all).

    The operation has an identity.
    """
    if x.dtype == dtype:
        return reduce(ufunc, x, axis, keepdims)
    require_castable(x.dtype, dtype)
    result = compute(ufunc, x, dtype, None, axis, keepdims)
    if result is None:
        result = reduce(ufunc, cast(x, dtype), axis, keepdims)
    return result


cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims):
    """Return the sums of ``(x - mean)**2`` along axes (None: all).

    `mean` has length 1 along the reduced axes, and the dtype of the result, which is a
    float.
    """
    result = compute(ADD, x, mean.dtype, mean, axis, keepdims)
    if result is None:
        distances = binary(
            SUBTRACT, x if x.dtype == mean.dtype else cast(x, mean.dtype), mean, None)
        inplace(MULTIPLY, distances, distances)
        result = reduce(ADD, distances, axis, keepdims)
    return result


cdef BaseArray compute(Ufunc ufunc, BaseArray x, int dtype, BaseArray mean, object axis,
                       bint keepdims):
    """Return a reduction of computed values; None if there are no loops for it."""
    cdef bint chosen[MAXDIMS]
    cdef Computing computing
    cdef Operands operands
    cdef Walk walk
    cdef BaseArray result
    cdef Py_ssize_t count
    cdef int i, kept = 0
    axis = read_axes(axis)
    count = combinable(ufunc, dtype, x, axis)
    if count > 1:
        # Along axes without a stride all elements are one: it stands for the others.
        result = compute(ufunc, distinct(x, axis), dtype, mean, axis, keepdims)
        return None if result is None else combined(ufunc, result, count)
    computing.folding.loop = loop_of(ufunc, dtype)
    computing.subtract = computing.multiply = NULL
    computing.conversion.cast = NULL
    if computing.folding.loop.function == NULL or reporting != 0 and reports() \
            or not can_transfer(x.dtype, dtype):
        return None
    if x.dtype != dtype:
        computing.conversion.cast = cast_between(x.dtype, dtype)
    if mean is not None:
        computing.subtract = loop_of(SUBTRACT, dtype)
        computing.multiply = loop_of(MULTIPLY, dtype)
        if computing.subtract.function == NULL or computing.multiply.function == NULL:
            return None
    parse_axes(axis, x.ndim, chosen)
    require_live(x)
    result = new_reduced(x, dtype, chosen, keepdims)
    fill(result, 0 if x.size == 0 and ufunc is ADD else identity(ufunc, dtype))
    if x.size == 0:
        return result
    if x.size * itemsize_of[dtype] >= settings().threshold \
            and (is_in_file(x) or is_in_file(result)):
        # As long as what is computed from: a pass writes it part by part.
        return None
    walk.ndim = x.ndim
    walk.nops = 3 if mean is not None else 2
    for i in range(x.ndim):
        walk.shape[i] = x.shape[i]
        walk.strides[1][i] = x.strides[i]
        walk.strides[0][i] = 0 if chosen[i] else result.strides[kept]
        if mean is not None:
            walk.strides[2][i] = 0 if chosen[i] else mean.strides[i]
        kept += keepdims or not chosen[i]
    walk_order(&walk)
    walk_merge(&walk)
    computing.conversion.itemsize = itemsize_of[x.dtype]
    computing.folding.run = fold_computed
    computing.folding.itemsize = itemsize_of[dtype]
    computing.folding.two_parts = kind_of[dtype] == KIND_COMPLEX
    computing.folding.any_order = kind_of[dtype] < KIND_FLOAT
    computing.folding.in_order = is_in_order(ufunc, dtype)
    computing.folding.may_overflow = may_overflow(ufunc, dtype)
    computing.folding.decides = computing.folding.failed = False
    store_scalar(identity(ufunc, dtype), dtype, <char *>computing.folding.identity)
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    if mean is not None:
        put(&operands, mean)
    compute_on(&operands, &walk, fold_computed if x.size < LARGE else fold_parts,
               &computing, x.size >= LARGE)
    if computing.folding.failed:
        raise MemoryError("no memory for the partial results of a reduction")
    return result


cdef bint is_in_file(BaseArray x) noexcept:
    cdef Strided layout
    cdef Mapped mapped
    strided(x, &layout)
    return find_mapping(layout.data, &mapped)


cdef void fold_computed(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate the values of operand 1 into operand 0."""
    cdef const Computing *computing = <const Computing *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *start[3]
    cdef char *at[3]
    cdef char[16] total
    cdef Walk block
    cdef Py_ssize_t rows = 1, length = 1, most, widest, row, column
    cdef int op, last = walk.ndim - 1
    block.ndim = 2
    block.nops = walk.nops
    for op in range(walk.nops):
        start[op] = data[op]
        block.strides[op][0] = walk.strides[op][last - 1] if last >= 1 else 0
        block.strides[op][1] = walk.strides[op][last] if last >= 0 else 0
    if last >= 1:
        rows = walk.shape[last - 1]
    if last >= 0:
        length = walk.shape[last]
    start_walk(last - 1, index)
    while True:
        if block.strides[0][1] == 0 and length > BLOCK \
                and not computing.folding.in_order:
            for row in range(rows):
                for op in range(walk.nops):
                    at[op] = start[op] + row * block.strides[op][0]
                fold_row(computing, at, &block, length, total)
                combine(&computing.folding, at[0], total, at[0])
        else:
            widest = min(length, <Py_ssize_t>BLOCK)
            most = BLOCK // widest
            row = 0
            while row < rows:
                block.shape[0] = min(most, rows - row)
                column = 0
                while column < length:
                    block.shape[1] = min(widest, length - column)
                    for op in range(walk.nops):
                        at[op] = start[op] + row * block.strides[op][0] \
                            + column * block.strides[op][1]
                    fold_block(computing, at, &block)
                    column += widest
                row += most
        if not step_walk(walk, last - 1, index, walk.nops, start):
            return


cdef void fold_row(const Computing *computing, char **data, const Walk *rows,
                   Py_ssize_t count, char *total) noexcept nogil:
    """Set the result of a stretch of operand 1, along the last axis of `rows`."""
    cdef char[16] second
    cdef char *rest[3]
    cdef char *block[3]
    cdef Py_ssize_t half
    cdef Walk walk
    cdef int op
    if count > BLOCK:
        half = first_half(count, computing.folding.two_parts)
        fold_row(computing, data, rows, half, total)
        for op in range(1, rows.nops):
            rest[op] = data[op] + half * rows.strides[op][1]
        fold_row(computing, rest, rows, count - half, second)
        combine(&computing.folding, total, second, total)
        return
    walk.ndim = 1
    walk.nops = rows.nops
    walk.shape[0] = count
    for op in range(rows.nops):
        walk.strides[op][0] = rows.strides[op][1]
        block[op] = data[op]
    memcpy(total, computing.folding.identity, computing.folding.itemsize)
    block[0] = total
    fold_block(computing, block, &walk)


cdef void fold_block(const Computing *computing, char **data,
                     const Walk *walk) noexcept nogil:
    """Accumulate the values of up to `BLOCK` elements, along one or two axes."""
    cdef double[2 * BLOCK] room
    cdef Py_ssize_t itemsize = computing.folding.itemsize, count = 1
    cdef Py_ssize_t[3] itemsizes = [itemsize, itemsize, itemsize]
    cdef char *values = <char *>room
    cdef char *args[3]
    cdef Walk dense, distances
    cdef int axis, last = walk.ndim - 1
    dense.ndim = distances.ndim = walk.ndim
    dense.nops = 2
    distances.nops = 3
    for axis in range(last, -1, -1):
        dense.shape[axis] = distances.shape[axis] = walk.shape[axis]
        dense.strides[0][axis] = walk.strides[0][axis]
        dense.strides[1][axis] = count * itemsize
        count *= walk.shape[axis]
    args[0] = data[1]
    if computing.conversion.cast != NULL:
        transfer_block(
            &computing.conversion, values, dense.strides[1][0], itemsize, data[1],
            walk.strides[1][0], walk.strides[1][last],
            walk.shape[0] if last == 1 else 1, walk.shape[last])
        args[0] = values
    if computing.subtract != NULL:
        for axis in range(walk.ndim):
            distances.strides[0][axis] = dense.strides[1][axis] \
                if computing.conversion.cast != NULL else walk.strides[1][axis]
            distances.strides[1][axis] = walk.strides[2][axis]
            distances.strides[2][axis] = dense.strides[1][axis]
        walk_merge(&distances)
        args[1] = data[2]
        args[2] = values
        run_short(computing.subtract, 3, args, &distances, itemsizes)
        args[0] = args[1] = args[2] = values
        computing.multiply.function(args, &count, itemsizes, computing.multiply.data)
    walk_merge(&dense)
    args[0] = data[0]
    args[1] = values
    fold(<void *>&computing.folding, args, &dense)

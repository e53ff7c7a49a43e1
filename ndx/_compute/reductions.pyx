"""Reductions: the elements along axes, combined by a binary operation."""

from libc.string cimport memcpy

import numpy as np

from ndx._array.pinning cimport Operands, compute_on, hold, let_go, put, view_of
from ndx._array.storage cimport (
    BaseArray, has_shape, new_empty, new_view, require_live, same_view, set_layout,
    strided,
)
from ndx._compute.copies cimport (
    Transfer, can_transfer, cast, cast_between, copy_into, fill,
    require_castable, transfer_block,
)
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport binary, inplace
from ndx._compute.folds cimport (
    Folding, combine, fold, is_in_order, may_overflow, run_fold,
)
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, run_short
from ndx._compute.tiles cimport first_half
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    BOOL, INT64, KIND_COMPLEX, KIND_FLOAT, KIND_UINT, UINT64, dtype_object,
    has_arithmetic, itemsize_of, kind_of, scalar_dtype, store_scalar,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, parse_axes, read_axes,
    shape_tuple, walk_merge, walk_order,
)
from ndx._lib.numpy_private cimport may_report, reports, restore, silence


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
cdef dict OPERATIONS = {
    reduction: find_ufunc(name) for name, reduction in NAMES.items()}


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
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    if loop.function == NULL or not has_arithmetic(x.dtype) \
            or may_report() and reports():
        # Parts of a sum would be rounded each for itself.
        return reduce_public(ufunc, &operands, x.ndim, chosen, keepdims)
    set_walk(&walk, result, x, None, chosen, keepdims)
    folding.loop = loop
    folding.run = fold
    folding.itemsize = itemsize_of[x.dtype]
    folding.two_parts = kind_of[x.dtype] == KIND_COMPLEX
    # The loops of bools are the slowest on columns.
    folding.any_order = x.dtype != BOOL and (kind_of[x.dtype] < KIND_FLOAT or (
        ufunc.name != "add" and ufunc.name != "multiply"))
    folding.in_order = folding.begun = False
    if x.size < LARGE:
        return compute_on(&operands, &walk, fold, &folding, False)
    return reduce_large(&folding, &operands, &walk, ufunc, x.dtype, x.dtype,
                        NAMES[ufunc.name])


cdef void set_walk(Walk *walk, BaseArray result, BaseArray x, BaseArray other,
                   const bint *chosen, bint keepdims) noexcept:
    """Set a walk over a result and an array, in the order of the array's memory.

    Another operand, means or a mask, is broadcast to the array.
    """
    cdef Strided layout
    cdef int i, kept = 0
    walk.ndim = x.ndim
    walk.nops = 2 if other is None else 3
    if other is not None:
        strided(other, &layout)
        broadcast_strides(&layout, x.ndim, x.shape, walk.strides[2])
    for i in range(x.ndim):
        walk.shape[i] = x.shape[i]
        walk.strides[1][i] = x.strides[i]
        walk.strides[0][i] = 0 if chosen[i] else result.strides[kept]
        kept += keepdims or not chosen[i]
    walk_order(walk)
    walk_merge(walk)


cdef int reduce_large(Folding *folding, Operands *operands, const Walk *walk,
                      Ufunc ufunc, int dtype, int into, str name) except -1:
    """Reduce many elements of a dtype, as values of another."""
    cdef Py_ssize_t[3] itemsizes = [itemsize_of[into], itemsize_of[dtype], 0]
    if walk.nops == 3:
        # A mask, or means.
        itemsizes[2] = itemsize_of[(<BaseArray>operands.arrays[2]).dtype]
    folding.in_order |= is_in_order(ufunc, into)
    folding.may_overflow = may_overflow(ufunc, into)
    folding.decides = into == BOOL and (
        ufunc.name == "logical_and" or ufunc.name == "logical_or")
    store_scalar(identity(ufunc, into), into, <char *>folding.identity)
    return run_fold(folding, operands, walk, itemsizes, name)


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
        # NumPy adds the element of an array without axes to 0, too.
        empty = empty or x.ndim == 0
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
    LEAST = 16                   # elements of a row that are worth a call

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc LOGICAL_AND = find_ufunc("logical_and")
cdef Ufunc LOGICAL_OR = find_ufunc("logical_or")
cdef Ufunc MAXIMUM = find_ufunc("maximum")
cdef Ufunc MINIMUM = find_ufunc("minimum")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc NOT_EQUAL = find_ufunc("not_equal")
cdef Ufunc SUBTRACT = find_ufunc("subtract")

# Adds what is computed of a contiguous row to a total.
ctypedef void (*RowSum)(char *total, const char *x, Py_ssize_t n,
                        const char *mean) noexcept nogil

cdef extern from "ndx/internal/choose.h" nogil:
    void ndx_choose(char **args, const Py_ssize_t *steps, Py_ssize_t n, size_t itemsize)

cdef extern from "ndx/internal/pairwise.h" nogil:
    RowSum ndx_find_row_sum(int dtype, int into, bint squares) noexcept

# A reduction of computed values. Operands are the result, the array, and its means.
cdef struct Computing:
    Folding folding              # the first: a pointer to it is a pointer to all
    Transfer truth               # to bools, before the conversion
    Transfer conversion          # `cast` is NULL if the dtype stays
    const Loop *subtract         # NULL: the elements themselves are reduced
    const Loop *multiply
    RowSum row_sum               # NULL: rows are computed block by block
    bint converts
    bint chooses                 # the identity stands for what operand 2 masks out
    Py_ssize_t given             # bytes of an element of the array


cdef BaseArray reduce_as(str name, Ufunc ufunc, BaseArray x, int dtype, object axis,
                         bint keepdims):
    """Combine the elements, converted to a dtype, along axes (None: all).

    The operation has an identity.
    """
    if x.dtype == dtype:
        return reduce(ufunc, x, axis, keepdims)
    require_castable(x.dtype, dtype)
    result = compute(name, ufunc, x, dtype, False, None, axis, keepdims)
    if result is None:
        result = reduce(ufunc, cast(x, dtype), axis, keepdims)
    return result


cdef BaseArray reduce_truth(str name, Ufunc ufunc, BaseArray x, int dtype,
                            object axis, bint keepdims):
    """Combine whether the elements are not zero, as values of a dtype."""
    cdef BaseArray truth
    if x.dtype == BOOL:
        return reduce_as(name, ufunc, x, dtype, axis, keepdims)
    result = compute(name, ufunc, x, dtype, True, None, axis, keepdims)
    if result is None:
        truth = binary(NOT_EQUAL, x, 0, None)
        result = reduce_as(name, ufunc, truth, dtype, axis, keepdims)
    return result


cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims):
    """Return the sums of ``(x - mean)**2`` along axes (None: all).

    `mean` has length 1 along the reduced axes, and the dtype of the result, which is a
    float.
    """
    result = compute("var", ADD, x, mean.dtype, False, mean, axis, keepdims)
    if result is None:
        distances = binary(
            SUBTRACT, x if x.dtype == mean.dtype else cast(x, mean.dtype), mean, None)
        inplace(MULTIPLY, distances, distances)
        result = reduce(ADD, distances, axis, keepdims)
    return result


cdef int accumulator(int dtype) noexcept:
    """Return the dtype of sums and products: that of small integers is a wide one."""
    if kind_of[dtype] == KIND_UINT:
        return UINT64
    return INT64 if kind_of[dtype] < KIND_FLOAT else dtype


cdef BaseArray reduce_where(str name, BaseArray x, object axis, bint keepdims,
                            object initial, BaseArray where):
    """Combine elements, and an initial value, along axes (None: all).

    A mask (None: all elements), which can be broadcast to the array, says which
    elements are combined. Return None for what is left to NumPy, errors among it.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Ufunc ufunc = OPERATIONS[name]
    cdef int dtype = x.dtype
    if ufunc is ADD or ufunc is MULTIPLY:
        dtype = accumulator(dtype)
    elif ufunc is LOGICAL_AND or ufunc is LOGICAL_OR:
        dtype = BOOL
    if initial is None and (ufunc is MINIMUM or ufunc is MAXIMUM) \
            or initial is not None and scalar_dtype(dtype, initial) != dtype \
            or may_report() and reports() or x.ndim == 0 \
            or not has_arithmetic(dtype) \
            or x.size > IN_ORDER and repeats(x, axis) > 1:
        return None
    if where is not None:
        memcpy(shape, x.shape, x.ndim * sizeof(Py_ssize_t))
        if where.ndim > x.ndim or where.dtype != BOOL or not has_shape(
                x, broadcast_into(x.ndim, shape, where.ndim, where.shape), shape):
            return None
        if ufunc is ADD and kind_of[dtype] >= KIND_FLOAT and not (
                x.c_contiguous and where.c_contiguous and where.size == x.size):
            # The last bits depend on how NumPy's iterator buffers its operands.
            return None
    return compute(name, ufunc, x, dtype, dtype == BOOL != x.dtype, None, axis,
                   keepdims, initial, where)


cdef BaseArray compute(str name, Ufunc ufunc, BaseArray x, int dtype, bint truth,
                       BaseArray mean, object axis, bint keepdims,
                       object initial=None, BaseArray where=None):
    """Return a reduction of computed values; None if there are no loops for it."""
    cdef bint chosen[MAXDIMS]
    cdef Computing computing
    cdef Operands operands
    cdef Walk walk
    cdef BaseArray result
    cdef Py_ssize_t count
    cdef int source = BOOL if truth else x.dtype
    axis = read_axes(axis)
    count = combinable(ufunc, dtype, x, axis)
    if count > 1 and initial is None and where is None:
        # Along axes without a stride all elements are one: it stands for the others.
        result = compute(name, ufunc, distinct(x, axis), dtype, truth, mean, axis,
                         keepdims)
        return None if result is None else combined(ufunc, result, count)
    computing.folding.loop = loop_of(ufunc, dtype)
    computing.subtract = computing.multiply = NULL
    computing.truth.cast = computing.conversion.cast = NULL
    # Converted integers and bools raise no flag of floating-point numbers.
    if computing.folding.loop.function == NULL or not can_transfer(source, dtype) \
            or truth and not can_transfer(x.dtype, BOOL) \
            or kind_of[source] >= KIND_FLOAT and may_report() and reports():
        return None
    if truth:
        computing.truth.cast = cast_between(x.dtype, BOOL)
        computing.truth.itemsize = itemsize_of[x.dtype]
    if source != dtype:
        computing.conversion.cast = cast_between(source, dtype)
        computing.conversion.itemsize = itemsize_of[source]
    if mean is not None:
        computing.subtract = loop_of(SUBTRACT, dtype)
        computing.multiply = loop_of(MULTIPLY, dtype)
        if computing.subtract.function == NULL or computing.multiply.function == NULL:
            return None
    computing.given = itemsize_of[x.dtype]
    computing.converts = truth or source != dtype
    computing.row_sum = NULL
    if ufunc is ADD and not truth:
        computing.row_sum = ndx_find_row_sum(x.dtype, dtype, mean is not None)
    parse_axes(axis, x.ndim, chosen)
    require_live(x)
    result = new_reduced(x, dtype, chosen, keepdims)
    if initial is not None:
        fill(result, initial)
    else:
        # A mask may select nothing.
        fill(result, 0 if ufunc is ADD and (x.size == 0 or where is not None)
             else identity(ufunc, dtype))
    if x.size == 0:
        return result
    set_walk(&walk, result, x, mean if mean is not None else where, chosen, keepdims)
    computing.folding.run = fold_computed
    if where is not None:
        computing.folding.run = fold_masked
    elif not computing.converts and mean is None:
        computing.folding.run = fold
    computing.folding.itemsize = itemsize_of[dtype]
    computing.folding.two_parts = kind_of[dtype] == KIND_COMPLEX
    computing.folding.any_order = kind_of[dtype] < KIND_FLOAT
    computing.folding.begun = initial is not None
    # NumPy adds each run of the elements that a mask selects for itself.
    computing.chooses = where is not None and computing.folding.any_order
    computing.folding.in_order = where is not None and not computing.chooses
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    if mean is not None:
        put(&operands, mean)
    if where is not None:
        put(&operands, where)
    if x.size < LARGE:
        computing.folding.in_order = is_in_order(ufunc, dtype)
        store_scalar(identity(ufunc, dtype), dtype, <char *>computing.folding.identity)
        compute_on(&operands, &walk, computing.folding.run, &computing, False)
    else:
        reduce_large(&computing.folding, &operands, &walk, ufunc, x.dtype, dtype, name)
    return result


cdef void fold_masked(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate the values of operand 1 where operand 2 is true into operand 0."""
    cdef const Computing *computing = <const Computing *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[3]
    cdef char *start[3]
    cdef const char *mask
    cdef Walk run
    cdef int op, last = max(walk.ndim - 1, 0)
    cdef Py_ssize_t length = walk.shape[last] if walk.ndim else 1, first = 0, stop
    cdef Py_ssize_t most = length
    if computing.converts or computing.chooses:
        most = BLOCK
    run.ndim = 1
    run.nops = 2
    for op in range(3):
        start[op] = data[op]
        run.strides[op][0] = walk.strides[op][last] if walk.ndim else 0
    start_walk(last, index)
    while True:
        first = 0
        while first < length:
            mask = start[2] + first * run.strides[2][0]
            stop = first
            if computing.chooses:
                stop = min(length, first + most)
            while not computing.chooses and stop < length and stop - first < most \
                    and mask[0]:
                stop += 1
                mask += run.strides[2][0]
            if stop == first:
                first += 1
                continue
            run.shape[0] = stop - first
            for op in range(3):
                at[op] = start[op] + first * run.strides[op][0]
            if computing.converts or computing.chooses:
                fold_block(computing, at, &run)
            else:
                fold(arg, at, &run)
            first = stop
        if not step_walk(walk, last, index, 3, start):
            return


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
        if computing.row_sum != NULL and length >= LEAST \
                and block.strides[0][1] == 0 \
                and block.strides[1][1] == computing.given \
                and (walk.nops == 2 or block.strides[2][1] == 0):
            for row in range(rows):
                computing.row_sum(
                    start[0] + row * block.strides[0][0],
                    start[1] + row * block.strides[1][0], length,
                    start[2] + row * block.strides[2][0] if walk.nops == 3 else NULL)
        elif block.strides[0][1] == 0 and length > BLOCK \
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
    cdef double[2 * BLOCK] chosen
    cdef Py_ssize_t[4] steps
    cdef char *operands[4]
    cdef char[BLOCK] truth
    cdef Py_ssize_t rows = walk.shape[0] if walk.ndim == 2 else 1
    cdef Py_ssize_t itemsize = computing.folding.itemsize, count = 1, step, between
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
    step, between = walk.strides[1][last], walk.strides[1][0]
    if computing.truth.cast != NULL:
        transfer_block(&computing.truth, truth, walk.shape[last], 1, args[0], between,
                       step, rows, walk.shape[last])
        args[0] = truth
        step, between = 1, walk.shape[last]
    if computing.conversion.cast != NULL:
        transfer_block(&computing.conversion, values, dense.strides[1][0], itemsize,
                       args[0], between, step, rows, walk.shape[last])
        args[0] = values
        step = itemsize
    elif computing.truth.cast != NULL:
        values = truth
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
    if computing.chooses:
        operands[0], operands[1], operands[3] = data[2], args[0], <char *>chosen
        operands[2] = <char *>computing.folding.identity
        steps[0], steps[1], steps[2], steps[3] = walk.strides[2][0], step, 0, itemsize
        ndx_choose(operands, steps, count, itemsize)
        values = <char *>chosen
    walk_merge(&dense)
    args[0] = data[0]
    args[1] = values
    fold(<void *>&computing.folding, args, &dense)

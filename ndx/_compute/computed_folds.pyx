"""Reductions of values that are computed from an array's elements, block by block.

The values are the elements in another dtype, or the squares of their distances from a
mean. They stay in a block that fits in the processor's first cache; NumPy writes all
distances to memory, then their squares. One contiguous stretch is halved as NumPy's
pairwise sum halves it, so that a sum of squares is NumPy's, to the last bit.
"""

from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, require_live, strided
from ndx._compute.copies cimport cast, fill, require_castable
from ndx._compute.elementwise cimport binary, inplace
from ndx._compute.folds cimport (
    Folding, combine, first_half, fold, fold_parts, is_in_order, may_overflow,
)
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, run_short
from ndx._compute.numpy_private cimport reporting, reports
from ndx._compute.passes.settings cimport settings
from ndx._compute.reductions cimport identity, new_reduced, reduce
from ndx._compute.broadcast_reductions cimport combinable, combined, distinct
from ndx._compute.transfers cimport (
    LARGE, Transfer, can_transfer, cast_between, transfer_block,
)
from ndx._compute.walking cimport start_walk, step_walk
from ndx._files.mapping cimport Mapped, find_mapping
from ndx._lib.dtypes cimport (
    KIND_COMPLEX, KIND_FLOAT, itemsize_of, kind_of, store_scalar,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, parse_axes, read_axes, walk_merge, walk_order,
)

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

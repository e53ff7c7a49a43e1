"""Sums of squared distances from a mean, block by block.

NumPy writes all distances to memory, then their squares, then sums them. Here they stay
in a block that fits in the processor's first cache. One contiguous stretch is halved as
NumPy's pairwise sum halves it, so that the sum is NumPy's, to the last bit.
"""

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, require_live
from ndx._compute.copies cimport LARGE, fill
from ndx._compute.elementwise cimport binary, inplace
from ndx._compute.folds cimport Folding, combine, first_half, fold, fold_parts
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, run_short
from ndx._compute.numpy_private cimport reporting, reports
from ndx._compute.reductions cimport identity, new_reduced, reduce
from ndx._compute.repeats cimport combined, distinct, repeats
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport itemsize_of, store_scalar
from ndx._lib.layout cimport (
    MAXDIMS, Walk, parse_axes, read_axes, walk_merge, walk_order,
)

cdef enum:
    BLOCK = 1024                 # elements computed together

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SUBTRACT = find_ufunc("subtract")

# A reduction of squares: operands are the result, the values and their means.
cdef struct Squaring:
    Folding folding              # the first: a pointer to it is a pointer to all
    const Loop *subtract
    const Loop *multiply


cdef BaseArray sum_squares(BaseArray x, BaseArray mean, object axis, bint keepdims):
    """Return the sums of ``(x - mean)**2`` along axes (None: all).

    `x` has floats. `mean` has the same dtype, and length 1 along the reduced axes.
    """
    cdef bint chosen[MAXDIMS]
    cdef Squaring squaring
    cdef Operands operands
    cdef Walk walk
    cdef BaseArray result
    cdef Py_ssize_t count
    cdef int i, kept = 0
    axis = read_axes(axis)
    count = repeats(x, axis)
    if count > 1:
        # One element stands for all along the axes without a stride.
        return combined(
            ADD, sum_squares(distinct(x, axis), mean, axis, keepdims), count)
    squaring.folding.loop = loop_of(ADD, x.dtype)
    squaring.subtract = loop_of(SUBTRACT, x.dtype)
    squaring.multiply = loop_of(MULTIPLY, x.dtype)
    if squaring.folding.loop.function == NULL or squaring.subtract.function == NULL \
            or squaring.multiply.function == NULL or reporting != 0 and reports():
        distances = binary(SUBTRACT, x, mean, None)
        inplace(MULTIPLY, distances, distances)
        return reduce(ADD, distances, axis, keepdims)
    parse_axes(axis, x.ndim, chosen)
    require_live(x)
    result = new_reduced(x, chosen, keepdims)
    fill(result, 0 if x.size == 0 else identity(ADD, x.dtype))
    if x.size == 0:
        return result
    walk.ndim = x.ndim
    walk.nops = 3
    for i in range(x.ndim):
        walk.shape[i] = x.shape[i]
        walk.strides[1][i] = x.strides[i]
        walk.strides[0][i] = 0 if chosen[i] else result.strides[kept]
        walk.strides[2][i] = 0 if chosen[i] else mean.strides[i]
        kept += keepdims or not chosen[i]
    walk_order(&walk)
    walk_merge(&walk)
    squaring.folding.run = fold_squares
    squaring.folding.itemsize = itemsize_of[x.dtype]
    squaring.folding.two_parts = False
    squaring.folding.decides = squaring.folding.any_order = False
    squaring.folding.failed = False
    store_scalar(identity(ADD, x.dtype), x.dtype, squaring.folding.identity)
    operands.count = 0
    put(&operands, result)
    put(&operands, x)
    put(&operands, mean)
    compute_on(&operands, &walk, fold_squares if x.size < LARGE else fold_parts,
               &squaring, x.size >= LARGE)
    if squaring.folding.failed:
        raise MemoryError("no memory for the partial results of a reduction")
    return result


cdef void fold_squares(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Accumulate the squares of operand 1 less operand 2 into operand 0."""
    cdef const Squaring *squaring = <const Squaring *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *start[3]
    cdef char *at[3]
    cdef char[16] total
    cdef Walk block
    cdef Py_ssize_t rows = 1, length = 1, most, widest, row, column
    cdef int op, last = walk.ndim - 1
    block.ndim = 2
    block.nops = 3
    for op in range(3):
        start[op] = data[op]
        block.strides[op][0] = walk.strides[op][last - 1] if last >= 1 else 0
        block.strides[op][1] = walk.strides[op][last] if last >= 0 else 0
    if last >= 1:
        rows = walk.shape[last - 1]
    if last >= 0:
        length = walk.shape[last]
    start_walk(last - 1, index)
    while True:
        if block.strides[0][1] == 0 and length > BLOCK:
            for row in range(rows):
                for op in range(3):
                    at[op] = start[op] + row * block.strides[op][0]
                sum_row(squaring, at, block.strides[1][1], length, total)
                combine(&squaring.folding, at[0], total, at[0])
        else:
            widest = min(length, <Py_ssize_t>BLOCK)
            most = BLOCK // widest
            row = 0
            while row < rows:
                block.shape[0] = min(most, rows - row)
                column = 0
                while column < length:
                    block.shape[1] = min(widest, length - column)
                    for op in range(3):
                        at[op] = start[op] + row * block.strides[op][0] \
                            + column * block.strides[op][1]
                    fold_block(squaring, at, &block)
                    column += widest
                row += most
        if not step_walk(walk, last - 1, index, 3, start):
            return


cdef void sum_row(const Squaring *squaring, char **data, Py_ssize_t stride,
                  Py_ssize_t count, char *total) noexcept nogil:
    """Set the sum over a stretch of operand 1, less one element of operand 2."""
    cdef char[16] second
    cdef char *rest[3]
    cdef char *block[3]
    cdef Py_ssize_t half
    cdef Walk walk
    if count > BLOCK:
        half = first_half(count, False)
        sum_row(squaring, data, stride, half, total)
        rest[1] = data[1] + half * stride
        rest[2] = data[2]
        sum_row(squaring, rest, stride, count - half, second)
        combine(&squaring.folding, total, second, total)
        return
    walk.ndim = 1
    walk.nops = 3
    walk.shape[0] = count
    walk.strides[0][0] = 0
    walk.strides[1][0] = stride
    walk.strides[2][0] = 0
    for half in range(squaring.folding.itemsize):
        total[half] = squaring.folding.identity[half]
    block[0] = total
    block[1] = data[1]
    block[2] = data[2]
    fold_block(squaring, block, &walk)


cdef void fold_block(const Squaring *squaring, char **data,
                     const Walk *walk) noexcept nogil:
    """Accumulate the squares of up to `BLOCK` elements."""
    cdef double[2 * BLOCK] squares
    cdef Py_ssize_t itemsize = squaring.folding.itemsize, count = 1
    cdef Py_ssize_t[3] itemsizes = [itemsize, itemsize, itemsize]
    cdef char *args[3]
    cdef Walk dense, distances
    cdef int axis, last = walk.ndim - 1
    dense.ndim = distances.ndim = walk.ndim
    dense.nops = 2
    distances.nops = 3
    for axis in range(last, -1, -1):
        dense.shape[axis] = distances.shape[axis] = walk.shape[axis]
        dense.strides[0][axis] = walk.strides[0][axis]
        distances.strides[0][axis] = walk.strides[1][axis]
        distances.strides[1][axis] = walk.strides[2][axis]
        dense.strides[1][axis] = distances.strides[2][axis] = count * itemsize
        count *= walk.shape[axis]
    walk_merge(&dense)
    walk_merge(&distances)
    args[0] = data[1]
    args[1] = data[2]
    args[2] = <char *>squares
    run_short(squaring.subtract, 3, args, &distances, itemsizes)
    args[0] = args[1] = args[2] = <char *>squares
    squaring.multiply.function(args, &count, itemsizes, squaring.multiply.data)
    args[0] = data[0]
    args[1] = <char *>squares
    fold(<void *>&squaring.folding, args, &dense)

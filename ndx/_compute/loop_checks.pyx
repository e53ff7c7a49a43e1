"""Checks that NumPy's loops are right for any strides, and a replacement if not.

NumPy chooses its loops for the CPU. Each has separate code for contiguous, strided,
reversed and repeated operands. In NumPy 2.4.6, for example, `isnan` is wrong if the
output is strided. So each loop is compared with itself: its result for contiguous
operands must equal its result for the same elements in any other layout. A loop that
fails is called for contiguous operands only, or for contiguous outputs if it is right
for these; other operands are copied to contiguous buffers, piece by piece. Loops of
products are checked in the same way (`stacks_are_right`); for them `_compute.matmul`
makes whole operands contiguous.
"""

from libc.math cimport copysign, fabs, isinf, isnan
from libc.stdlib cimport malloc
from libc.string cimport memcmp, memcpy, memset

import numpy as np

from ndx._lib.dtypes cimport (
    COMPLEX64, COMPLEX128, FLOAT32, KIND_FLOAT, NDTYPES, dtype_object, has_arithmetic,
    itemsize_of, kind_of,
)
from ndx._lib.numpy_private cimport LoopFunction

cdef enum:
    LEAST = 19                   # fewest elements of a trial: an odd number
    BYTES = 70                   # fewest bytes of a trial: more than a SIMD vector
    SPREAD = 8                   # the largest step, in elements
    PIECE = 256                  # elements copied at a time
    LARGEST = 16                 # bytes of the largest element

# Layouts of the matrices in a stack.
cdef enum:
    PLAIN = 0
    TRANSPOSED = 1
    SPREAD_OUT = 2               # with gaps after each element and each row
    BACKWARDS = 3
    REPEATED = 4                 # one row, broadcast
    STACK = 2                    # matrices in a stack
    CORE = 1120                  # bytes between them: enough for one in any layout

cdef extern from "ndx/internal/move.h" nogil:
    void ndx_move(char *out, Py_ssize_t out_row, Py_ssize_t out_step, const char *x,
                  Py_ssize_t x_row, Py_ssize_t x_step, Py_ssize_t rows,
                  Py_ssize_t length, size_t itemsize)


# A loop that is right for contiguous operands only.
cdef struct Mended:
    LoopFunction function
    void *data
    int nin
    bint any_inputs              # whether only the output has to be contiguous
    Py_ssize_t itemsizes[3]

# The operands of a trial: contiguous, and with steps.
cdef struct Trial:
    Py_ssize_t count
    int nin
    Py_ssize_t itemsizes[3]
    char plain[2][BYTES * LARGEST]
    char spread[3][BYTES * LARGEST * SPREAD]
    char expected[BYTES * LARGEST]
    char found[BYTES * LARGEST]

# Steps, in elements: of the operands, then of the result.
cdef int[8][3] STEPS = [
    [2, -1, 2], [-1, 3, -1], [1, 1, 3], [3, 2, 1],
    # As many elements as one has bytes: NumPy's `negative` compares the two.
    [4, 1, 2], [8, 1, 2],
    # The first trial, and those of a repeated operand, compute what is expected of the
    # ones after them.
    [1, 0, -2], [0, 2, 1],
]
cdef list pools = [None] * NDTYPES
# The lengths of a product (m, n) @ (n, p), and layouts of both operands and the result.
cdef int[3][3] PRODUCTS = [[4, 5, 3], [1, 5, 4], [5, 4, 1]]
cdef int[8][3] LAYOUTS = [
    [TRANSPOSED, PLAIN, PLAIN], [PLAIN, TRANSPOSED, TRANSPOSED],
    [TRANSPOSED, TRANSPOSED, BACKWARDS], [SPREAD_OUT, SPREAD_OUT, SPREAD_OUT],
    [BACKWARDS, SPREAD_OUT, PLAIN], [PLAIN, BACKWARDS, SPREAD_OUT],
    [REPEATED, PLAIN, PLAIN], [PLAIN, REPEATED, TRANSPOSED],
]


cdef int mend(str name, int nin, int in_dtype, int out_dtype, LoopFunction *function,
              void **data) except -1:
    cdef Mended *mended
    if is_right(name, nin, in_dtype, out_dtype, function[0], data[0], False):
        return 0
    mended = <Mended *>malloc(sizeof(Mended))
    if mended == NULL:
        raise MemoryError()
    mended.function = function[0]
    mended.data = data[0]
    mended.nin = nin
    mended.any_inputs = is_right(
        name, nin, in_dtype, out_dtype, function[0], data[0], True)
    mended.itemsizes = [itemsize_of[in_dtype]] * 3
    mended.itemsizes[nin] = itemsize_of[out_dtype]
    function[0] = run_contiguous
    data[0] = mended
    return 0


# ---------------------------------------------------------------- trials

cdef bint is_right(str name, int nin, int in_dtype, int out_dtype,
                   LoopFunction function, void *data, bint plain) except -1:
    """Whether a loop computes the same for all layouts of its operands.

    The output is contiguous if `plain`.
    """
    cdef Trial trial
    cdef int[3] steps
    cdef int i, op
    cdef const unsigned char[::1] values
    trial.nin = nin
    trial.itemsizes = [itemsize_of[in_dtype]] * 3
    trial.itemsizes[nin] = itemsize_of[out_dtype]
    trial.count = max(LEAST, BYTES // trial.itemsizes[0])
    if pools[in_dtype] is None:
        pools[in_dtype] = make_pool(in_dtype, trial.count)
    values = pools[in_dtype]
    for op in range(2):
        memcpy(trial.plain[op], &values[op * trial.count * trial.itemsizes[0]],
               trial.count * trial.itemsizes[0])
    for i in range(8):
        steps = STEPS[i]
        if plain:
            steps[2] = 1
        if not is_same(&trial, function, data, steps, out_dtype, i == 0, False):
            return False
        # Also in place.
        if i < 2 and nin == 2 and in_dtype == out_dtype and not plain and not is_same(
                &trial, function, data, steps, out_dtype, False, True):
            return False
    if in_dtype == out_dtype and name in (
            "add", "multiply", "maximum", "minimum", "logical_and", "logical_or"):
        return reduces(&trial, function, data, out_dtype)
    return True


cdef object make_pool(int dtype, Py_ssize_t count):
    """Return the bytes of a first and of a second operand.

    Integers can be divided by the second, and raised to it.
    """
    kind = dtype_object(dtype).kind
    first = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.75, -7.5, float("inf"), float("-inf"),
             float("nan")]
    second = [0.5, 2.0, 1.0, -1.0, 3.0, 0.0, float("inf"), float("nan"), -2.0]
    if kind == "b":
        first, second = [False, True, True], [True, False]
    elif kind in "iu":
        first, second = [0, 1, 2, 3, 5, 7, 100, 127], [3, 1, 2, 7, 5]
        first += [-1, -2, -7] if kind == "i" else []
    elif kind == "c":
        # NumPy's SIMD and scalar loops round products differently.
        first = [complex(a, b) for a in (0.0, 1.0, -2.0, 0.5) for b in (0.0, -1.0, 3.0)]
        second = [complex(a, b) for a in (2.0, 1.0, -1.0) for b in (0.0, 1.0, -0.5)]
    found = np.empty((2, count), dtype_object(dtype))
    found[0] = np.resize(np.array(first, found.dtype), count)
    found[1] = np.resize(np.array(second, found.dtype), count)
    return found.tobytes()


cdef bint is_same(Trial *trial, LoopFunction function, void *data, const int *steps,
                  int out_dtype, bint first, bint inplace) noexcept:
    """Whether a loop gives its contiguous result for operands with these steps, too.

    The first trial computes the contiguous result.
    """
    cdef int nin = trial.nin, op
    cdef Py_ssize_t n = trial.count
    cdef Py_ssize_t itemsize
    cdef char *args[3]
    cdef Py_ssize_t strides[3]
    cdef char *result
    # Make contiguous operands; a step of 0 repeats the first element.
    for op in range(nin):
        strides[op] = trial.itemsizes[op]
        args[op] = trial.plain[op]
        if steps[op] == 0:
            args[op] = trial.spread[op]
            place(args[op], strides[op], trial.plain[op], 0, n, strides[op])
    args[nin] = trial.expected
    strides[nin] = trial.itemsizes[nin]
    if first or steps[0] == 0 or (nin == 2 and steps[1] == 0):
        function(args, &n, strides, data)
    for op in range(nin):
        itemsize = trial.itemsizes[op]
        args[op] = start_of(trial.spread[op], n, steps[op] * itemsize)
        strides[op] = steps[op] * itemsize
        place(args[op], strides[op], trial.plain[op], itemsize, n if steps[op] else 1,
              itemsize)
    itemsize = trial.itemsizes[nin]
    if inplace:
        args[nin] = args[0]
        strides[nin] = strides[0]
    else:
        strides[nin] = steps[2] * itemsize
        memset(trial.spread[2], 0, n * abs(strides[nin]))
        args[nin] = start_of(trial.spread[2], n, strides[nin])
    result = args[nin]
    function(args, &n, strides, data)
    place(trial.found, itemsize, result, strides[nin], n, itemsize)
    return alike(trial.expected, trial.found, n, out_dtype)


cdef bint reduces(Trial *trial, LoopFunction function, void *data, int dtype) noexcept:
    """Whether a reduction equals combining the elements one by one."""
    cdef Py_ssize_t itemsize = trial.itemsizes[0], n = trial.count, one = 1, i
    cdef Py_ssize_t[3] single = [itemsize, itemsize, itemsize]
    cdef Py_ssize_t steps[3]
    cdef char *args[3]
    cdef int step
    for i in range(n):
        args[0] = trial.expected
        args[1] = trial.plain[0] + i * itemsize
        args[2] = trial.expected
        if i == 0:
            memcpy(trial.expected, args[1], itemsize)
        else:
            function(args, &one, single, data)
    for step in (1, 2, 3, -1, -2):
        steps[0] = steps[2] = 0
        steps[1] = step * itemsize
        args[1] = start_of(trial.spread[1], n, steps[1])
        place(args[1], steps[1], trial.plain[0], itemsize, n, itemsize)
        memcpy(trial.found, trial.plain[0], itemsize)
        args[0] = args[2] = trial.found
        args[1] += steps[1]
        n -= 1
        function(args, &n, steps, data)
        n += 1
        if not alike(trial.expected, trial.found, 1, dtype):
            return False
    return True


# ---------------------------------------------------------------- trials of products

cdef bint stacks_are_right(bint vectors, int dtype, LoopFunction function,
                           void *data) except -1:
    """Whether a loop over stacks computes the same for all layouts of their cores."""
    cdef const unsigned char[::1] values = make_factors(dtype)
    cdef int i, k
    for i in range(1 if vectors else 3):
        for k in range(8):
            if not is_same_product(vectors, dtype, function, data, &values[0],
                                   PRODUCTS[i], LAYOUTS[k]):
                return False
    return True


cdef object make_factors(int dtype):
    """Return the bytes of factors whose sums of products are exact."""
    numbers = np.resize([1, -2, 3, -1, 2, 3, -3, 1, 2], 32)
    kind = dtype_object(dtype).kind
    if kind == "b":
        numbers = numbers > 1
    elif kind == "u":
        numbers = np.abs(numbers)
    elif kind == "c":
        numbers = numbers + 1j * np.roll(numbers, 2)
    return numbers.astype(dtype_object(dtype)).tobytes()


cdef bint is_same_product(bint vectors, int dtype, LoopFunction function, void *data,
                          const unsigned char *values, const int *sizes,
                          const int *kinds) noexcept:
    cdef char[3][STACK * CORE] plain
    cdef char[3][STACK * CORE] room
    cdef char *args[3]
    cdef Py_ssize_t steps[3][2]
    cdef Py_ssize_t shapes[3][2]
    cdef Py_ssize_t itemsize = itemsize_of[dtype], row
    cdef int op, matrix
    shapes[0] = [1 if vectors else sizes[0], sizes[1]]
    shapes[1] = [1 if vectors else sizes[1], sizes[1] if vectors else sizes[2]]
    shapes[2] = [1 if vectors else sizes[0], 1 if vectors else sizes[2]]
    for op in range(3):
        args[op] = plain[op]
        steps[op] = [shapes[op][1] * itemsize, itemsize]
        for matrix in range(STACK):
            for row in range(shapes[op][0] if op < 2 else 0):
                memcpy(plain[op] + matrix * CORE + row * steps[op][0],
                       values + itemsize * (7 * op + matrix + (
                           0 if kinds[op] == REPEATED else row)),
                       steps[op][0])
    multiply(vectors, function, data, args, shapes, steps)
    for op in range(3):
        set_steps(kinds[op], shapes[op], itemsize, steps[op])
        # The address of the first element: the lowest one is at the buffer's start.
        args[op] = room[op] - sum_of_negative(shapes[op], steps[op])
        for matrix in range(STACK):
            if op < 2:
                copy_core(args[op] + matrix * CORE, steps[op],
                          plain[op] + matrix * CORE, shapes[op], itemsize, True)
    multiply(vectors, function, data, args, shapes, steps)
    for matrix in range(STACK):
        copy_core(args[2] + matrix * CORE, steps[2], room[0], shapes[2], itemsize,
                  False)
        if not alike(plain[2] + matrix * CORE, room[0], shapes[2][0] * shapes[2][1],
                     dtype):
            return False
    return True


cdef void multiply(bint vectors, LoopFunction function, void *data, char **args,
                   Py_ssize_t[2] *shapes, Py_ssize_t[2] *steps) noexcept:
    """Call a loop over stacks with a copy of `args`, which it may change."""
    cdef char *moved[3]
    cdef Py_ssize_t[4] counts = [STACK, shapes[0][0], shapes[0][1], shapes[1][1]]
    cdef Py_ssize_t[9] strides = [
        CORE, CORE, CORE, steps[0][0], steps[0][1], steps[1][0], steps[1][1],
        steps[2][0], steps[2][1]]
    memcpy(moved, args, 3 * sizeof(char *))
    if vectors:
        counts[1] = shapes[0][1]
        strides[3], strides[4] = steps[0][1], steps[1][1]
    function(moved, counts, strides, data)


cdef void set_steps(int kind, const Py_ssize_t *shape, Py_ssize_t itemsize,
                    Py_ssize_t *steps) noexcept:
    """Set the steps between the rows and between the columns of a matrix."""
    steps[0], steps[1] = shape[1] * itemsize, itemsize
    if kind == TRANSPOSED:
        steps[0], steps[1] = itemsize, shape[0] * itemsize
    elif kind == SPREAD_OUT:
        steps[0], steps[1] = (2 * shape[1] + 1) * itemsize, 2 * itemsize
    elif kind == BACKWARDS:
        steps[0], steps[1] = -steps[0], -itemsize
    elif kind == REPEATED:
        steps[0] = 0


cdef Py_ssize_t sum_of_negative(const Py_ssize_t *shape,
                                const Py_ssize_t *steps) noexcept:
    """Return the offset of the lowest element of a matrix from the first; 0 or less."""
    return min(0, (shape[0] - 1) * steps[0]) + min(0, (shape[1] - 1) * steps[1])


cdef void copy_core(char *core, const Py_ssize_t *steps, char *plain,
                    const Py_ssize_t *shape, Py_ssize_t itemsize, bint into) noexcept:
    """Copy a matrix of any layout to one in C order, or (`into`) from it."""
    cdef Py_ssize_t row, step = shape[1] * itemsize
    for row in range(shape[0]):
        if into:
            place(core + row * steps[0], steps[1], plain + row * step, itemsize,
                  shape[1], itemsize)
        else:
            place(plain + row * step, itemsize, core + row * steps[0], steps[1],
                  shape[1], itemsize)


cdef char *start_of(char *room, Py_ssize_t count, Py_ssize_t step) noexcept:
    """Return the address of the first of `count` elements in a buffer."""
    return room - (count - 1) * step if step < 0 else room


cdef void place(char *out, Py_ssize_t out_step, const char *x, Py_ssize_t step,
                Py_ssize_t count, Py_ssize_t itemsize) noexcept:
    """Copy elements between buffers with different steps."""
    cdef Py_ssize_t i
    for i in range(count):
        memcpy(out + i * out_step, x + i * step, itemsize)


cdef bint alike(const char *one, const char *other, Py_ssize_t count,
                int dtype) noexcept:
    """Whether results are the same, except for rounding."""
    cdef Py_ssize_t i
    if kind_of[dtype] < KIND_FLOAT or not has_arithmetic(dtype):
        return memcmp(one, other, count * itemsize_of[dtype]) == 0
    if dtype == COMPLEX64 or dtype == COMPLEX128:
        count *= 2
    for i in range(count):
        if dtype == FLOAT32 or dtype == COMPLEX64:
            if not near((<const float *>one)[i], (<const float *>other)[i], 1e-4):
                return False
        elif not near((<const double *>one)[i], (<const double *>other)[i], 1e-10):
            return False
    return True


cdef bint near(double x, double y, double tolerance) noexcept:
    if isnan(x) or isnan(y):
        return isnan(x) and isnan(y)
    if isinf(x) or isinf(y):
        return x == y
    # The signs of 0 and -0 count, but not those of values close to 0.
    if x == 0 and y == 0:
        return copysign(1, x) == copysign(1, y)
    return fabs(x - y) <= tolerance * max(fabs(x), 1.0)


# ---------------------------------------------------------------- the replacement

cdef void run_contiguous(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                         void *data) noexcept nogil:
    """Run a loop on contiguous pieces; has the signature of NumPy's loops."""
    cdef const Mended *mended = <const Mended *>data
    cdef char[3][PIECE * LARGEST] room
    cdef char *pieces[3]
    cdef Py_ssize_t strides[3]
    cdef Py_ssize_t done = 0, n
    cdef int nin = mended.nin, op
    # In a reduction the first operand is the result: it is not copied, and its
    # pointer does not move.
    cdef bint reduction = nin == 2 and args[0] == args[2] and steps[0] == 0 \
        and steps[2] == 0
    cdef bint gathers = reduction or not mended.any_inputs
    if not gathers and steps[nin] == mended.itemsizes[nin]:
        mended.function(args, counts, steps, mended.data)
        return
    while done < counts[0]:
        n = min(PIECE, counts[0] - done)
        for op in range(nin + 1):
            strides[op] = mended.itemsizes[op]
            pieces[op] = args[op] + done * steps[op]
            if reduction and op != 1:
                strides[op] = 0
            elif op < nin and not gathers:
                strides[op] = steps[op]
            elif steps[op] != strides[op]:
                # One element for all is copied once.
                if op < nin and (done == 0 or steps[op] != 0):
                    ndx_move(room[op], strides[op], 0, pieces[op], steps[op], 0, n, 1,
                             strides[op])
                pieces[op] = room[op]
        mended.function(pieces, &n, strides, mended.data)
        if not reduction and steps[nin] != mended.itemsizes[nin]:
            ndx_move(args[nin] + done * steps[nin], steps[nin], 0, room[nin],
                     mended.itemsizes[nin], 0, n, 1, mended.itemsizes[nin])
        done += n

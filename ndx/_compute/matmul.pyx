"""Products of matrices and vectors, by NumPy's loops (and so by BLAS), and norms."""

cimport numpy as cnp
from libc.string cimport memcpy, memset

from ndx._array.dispatch cimport answer, engine_for
from ndx._array.pinning cimport Operands, compute_on, hold, let_go, put, view_of
from ndx._array.storage cimport (
    BaseArray, has_shape, new_empty, new_view, require_usable, set_layout, strided,
)
from ndx._compute.aliasing cimport touches
from ndx._compute.copies cimport cast, copy, copy_into, fill, in_c_order
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport (
    binary, call_public, check_output, operand_of, part, shape_error, unary,
)
from ndx._compute.executor cimport run
from ndx._compute.loop_checks cimport stacks_are_right
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc, loop_of, run_stacked
from ndx._compute.numpy_results cimport own_result
from ndx._compute.passes.parts cimport multiply_steps
from ndx._compute.reductions cimport combined, distinct, reduce
from ndx._compute.tiles cimport Job, begin_job, cut_rows, walk_size
from ndx._lib.dtypes cimport (
    FLOAT64, KIND_COMPLEX, KIND_FLOAT, NDTYPES, dtype_code, dtype_object,
    has_arithmetic, itemsize_of, kind_of, promote_table,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, normalize_axis,
    read_axes, shape_tuple, walk_merge,
)
from ndx._lib.numpy_private cimport LoopFunction, may_report, reports

__all__ = ["euclidean_norm"]

cdef extern from "ndx/internal/arithmetic.h" nogil:
    Py_ssize_t ndx_multiply_most(Py_ssize_t a, Py_ssize_t b)

cdef extern from "numpy/arrayobject.h":
    object PyArray_Correlate2(object x, object y, int mode)

cdef enum:
    TERMS = 20               # that BLAS adds in a cycle
    TOGETHER = 1 << 30       # terms of a part: some 15 ms

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc MATMUL = find_ufunc("matmul")
cdef Ufunc VECDOT = find_ufunc("vecdot")

# Which layouts of operands a loop of NumPy's is right for. No loop is known that needs
# contiguous ones. Loops are looked at when they are first used: BLAS reserves memory
# (32 MiB) at its first product.
cdef enum Layouts:
    UNKNOWN = 0
    ANY_LAYOUT
    CONTIGUOUS

cdef int[NDTYPES] layouts_of_matrices
cdef int[NDTYPES] layouts_of_vectors


def set_layouts(bint contiguous):
    """Treat all loops as right for contiguous operands only, or unknown. For tests."""
    cdef int dtype
    for dtype in range(NDTYPES):
        layouts_of_matrices[dtype] = layouts_of_vectors[dtype] = \
            CONTIGUOUS if contiguous else UNKNOWN


cdef bint needs_contiguous(const Loop *loop, bint vectors, int dtype) except -1:
    """Whether a loop is right for contiguous operands only."""
    cdef int *known = &layouts_of_vectors[0] if vectors else &layouts_of_matrices[0]
    if known[dtype] == UNKNOWN:
        known[dtype] = ANY_LAYOUT if loop.function == NULL or stacks_are_right(
            vectors, dtype, loop.function, loop.data) else CONTIGUOUS
    return known[dtype] == CONTIGUOUS


def is_trusted(name, dtype, address):
    """Whether the loop at an address passes the check. For tests."""
    return stacks_are_right(
        name == "vecdot", dtype_code(dtype), <LoopFunction><size_t>address, NULL)


cdef BaseArray laid_plain(BaseArray x):
    """Return an array, or a copy of it, in C order."""
    return x if x.c_contiguous else in_c_order(x, x.dtype)


cdef object matmul(object x1, object x2, BaseArray out):
    """Return the matrix product, stacked and broadcast; or NotImplemented."""
    cdef BaseArray a = operand_of(x1), b = operand_of(x2)
    cdef const Loop *loop
    cdef int dtype
    cdef bint on_device
    if a is None or b is None:
        return NotImplemented
    dtype = promote_table[a.dtype][b.dtype]
    loop = loop_of(MATMUL, dtype)
    require_usable(a)
    require_usable(b)
    if a.ndim == 0 or b.ndim == 0:
        raise ValueError(
            f"matmul: operands of shapes {shape_tuple(a.ndim, a.shape)} and "
            f"{shape_tuple(b.ndim, b.shape)}: each needs one axis or more; use "
            "multiply for scalars")
    on_device = a.block.device or b.block.device or (
        out is not None and out.block.device)
    if not on_device and has_arithmetic(dtype) and a.strides[a.ndim - 1] == 0 \
            and b.strides[max(b.ndim - 2, 0)] == 0 \
            and a.shape[a.ndim - 1] == b.shape[max(b.ndim - 2, 0)] > 1:
        return matmul_repeated(a, b, out)
    if a.dtype != dtype:
        a = cast(a, dtype)
    if b.dtype != dtype:
        b = cast(b, dtype)
    if out is not None:
        check_output("matmul", out, dtype)
    if on_device:
        engine = engine_for("matmul", (a, b, out))
        return answer(engine, "matmul", engine.matmul(a, b, out))
    if out is not None:
        # A product can't be computed in place: each element of an operand is read
        # again.
        if touches(out, a):
            a = copy(a)
        if touches(out, b):
            b = copy(b)
    return matmul_walk(a, b, loop, dtype, out)


cdef BaseArray matmul_repeated(BaseArray a, BaseArray b, BaseArray out):
    """Return a product in which each sum repeats one term."""
    cdef BaseArray total, term = matmul(
        distinct(a, -1), distinct(b, -1 if b.ndim == 1 else -2), out)
    total = combined(ADD, term, a.shape[a.ndim - 1])
    if out is None:
        return total
    copy_into(out, total)
    return out


cdef BaseArray matmul_walk(BaseArray a, BaseArray b, const Loop *loop, int dtype,
                           BaseArray out):
    cdef Operands operands
    cdef Walk batch
    cdef Cores cores
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Strided stack
    cdef int a_core = 1 if a.ndim == 1 else 2, b_core = 1 if b.ndim == 1 else 2
    cdef int ndim
    cdef Py_ssize_t work
    if needs_contiguous(loop, False, dtype):
        a, b = laid_plain(a), laid_plain(b)
        if out is not None and not out.c_contiguous:
            copy_into(out, matmul_walk(a, b, loop, dtype, None))
            return out
    cores.sizes[0] = 1 if a_core == 1 else a.shape[a.ndim - 2]
    cores.sizes[1] = a.shape[a.ndim - 1]
    cores.sizes[2] = 1 if b_core == 1 else b.shape[b.ndim - 1]
    if b.shape[b.ndim - b_core] != cores.sizes[1]:
        raise ValueError(
            f"matmul: shapes {shape_tuple(a.ndim, a.shape)} and "
            f"{shape_tuple(b.ndim, b.shape)} don't match: the last axis of the first "
            f"has length {cores.sizes[1]}, the "
            f"{'only' if b_core == 1 else 'second last'} of the second "
            f"{b.shape[b.ndim - b_core]}")
    batch.ndim = a.ndim - a_core
    batch.nops = 3
    memcpy(batch.shape, a.shape, batch.ndim * sizeof(Py_ssize_t))
    batch.ndim = broadcast_into(batch.ndim, batch.shape, b.ndim - b_core, b.shape)
    if batch.ndim < 0:
        raise shape_error("matmul (its stacks of matrices)", a, b)
    ndim = batch.ndim
    memcpy(shape, batch.shape, ndim * sizeof(Py_ssize_t))
    if a_core == 2:
        shape[ndim] = cores.sizes[0]
        ndim += 1
    if b_core == 2:
        shape[ndim] = cores.sizes[2]
        ndim += 1
    if out is None:
        out = new_empty(dtype, ndim, shape)
    elif not has_shape(out, ndim, shape):
        raise ValueError(
            f"matmul: out has shape {shape_tuple(out.ndim, out.shape)}, but the "
            f"result has shape {shape_tuple(ndim, shape)}")
    if out.size == 0:
        return out
    if cores.sizes[1] == 0:
        fill(out, 0)
        return out
    operands.count = 0
    put(&operands, a)
    put(&operands, b)
    put(&operands, out)
    if loop.function == NULL or may_report() and reports():
        call_public(MATMUL, &operands, loop)
        return out
    strided(a, &stack)
    stack.ndim -= a_core
    broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[0])
    strided(b, &stack)
    stack.ndim -= b_core
    broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[1])
    memcpy(batch.strides[2], out.strides, batch.ndim * sizeof(Py_ssize_t))
    # BLAS needs the stride of a contiguous matrix for an axis of length 1.
    cores.strides[1] = a.strides[a.ndim - 1]
    cores.strides[0] = (a.strides[a.ndim - 2] if a_core == 2
                        else cores.sizes[1] * cores.strides[1])
    cores.strides[2] = b.strides[b.ndim - b_core]
    cores.strides[3] = b.strides[b.ndim - 1] if b_core == 2 else itemsize_of[dtype]
    cores.strides[5] = out.strides[ndim - 1] if b_core == 2 else itemsize_of[dtype]
    cores.strides[4] = (out.strides[ndim - b_core] if a_core == 2
                        else cores.sizes[2] * cores.strides[5])
    walk_merge(&batch)
    work = ndx_multiply_most(out.size, cores.sizes[1])
    if work >= LARGE and batch.ndim == 0 and multiply_steps(
            as_matrix(a, a.ndim == 1, False), as_matrix(b, False, b.ndim == 1),
            as_matrix(out, a.ndim == 1, b.ndim == 1), product):
        return out
    cores.loop = loop
    run_cores(&operands, &batch, &cores, work, "matmul")
    return out


# Arguments of a loop over stacks.
cdef struct Cores:
    const Loop *loop
    Py_ssize_t sizes[3]
    Py_ssize_t strides[6]


cdef void compute_stacked(void *arg, char **data, const Walk *batch) noexcept nogil:
    cdef const Cores *cores = <const Cores *>arg
    run_stacked(cores.loop, data, batch, cores.sizes, cores.strides)


cdef int run_cores(Operands *operands, const Walk *batch, Cores *cores,
                   Py_ssize_t terms, str name) except -1:
    """Compute a stack of products, which are sums of so many terms in all.

    One after the other: BLAS has threads of its own. Ctrl-C ends it between two of
    them; one is not cut, since BLAS would be slower, and round otherwise.
    """
    cdef Py_ssize_t size = walk_size(batch)
    cdef Job job
    cdef int op
    if terms < LARGE:
        return compute_on(operands, batch, compute_stacked, cores, False)
    begin_job(&job, operands, batch, compute_stacked, cores)
    job.in_order = True
    job.cycles = <int>min(1 + terms // size // TERMS, <Py_ssize_t>1 << 30)
    for op in range(3):
        job.itemsizes[op] = 0
    cut_rows(&job.grid, batch, max(1, TOGETHER // (terms // size + 1)))
    return run(&job, name)


cdef BaseArray as_matrix(BaseArray x, bint row, bint column):
    """Return a matrix as a view of 2 axes.

    `row` and `column` say that `x` lacks the axis of rows or of columns. All axes
    before those of the matrix have length 1.
    """
    cdef BaseArray view
    cdef int first = x.ndim - 2 + row + column
    if x.ndim == 2 and not row and not column:
        return x
    view = new_view(x, 2)
    view.shape[0] = 1 if row else x.shape[first]
    view.shape[1] = 1 if column else x.shape[x.ndim - 1]
    view.strides[0] = itemsize_of[x.dtype] if row else x.strides[first]
    view.strides[1] = itemsize_of[x.dtype] if column else x.strides[x.ndim - 1]
    set_layout(view)
    return view


cdef int product(BaseArray a, BaseArray b, BaseArray out) except -1:
    """Compute one panel of a product (`passes.products`)."""
    matmul_walk(a, b, loop_of(MATMUL, out.dtype), out.dtype, out)
    return 0


cdef object vecdot(object x1, object x2, object axis):
    """Return the dot products of vectors along an axis; or NotImplemented."""
    cdef BaseArray a = operand_of(x1), b = operand_of(x2)
    cdef const Loop *loop
    cdef int dtype
    cdef bint on_device
    if a is None or b is None:
        return NotImplemented
    axis = read_axes(axis)
    dtype = promote_table[a.dtype][b.dtype]
    loop = loop_of(VECDOT, dtype)
    require_usable(a)
    require_usable(b)
    a = axis_last(a, normalize_axis(axis, a.ndim))
    b = axis_last(b, normalize_axis(axis, b.ndim))
    if a.shape[a.ndim - 1] != b.shape[b.ndim - 1]:
        raise ValueError(
            f"vecdot: axis {axis} has length {a.shape[a.ndim - 1]} in the first array "
            f"and {b.shape[b.ndim - 1]} in the second; vectors are not broadcast")
    on_device = a.block.device or b.block.device
    if not on_device and a.strides[a.ndim - 1] == 0 and b.strides[b.ndim - 1] == 0 \
            and a.shape[a.ndim - 1] > 1:
        return combined(ADD, vecdot(distinct(a, -1), distinct(b, -1), -1),
                        a.shape[a.ndim - 1])
    if a.dtype != dtype:
        a = cast(a, dtype)
    if b.dtype != dtype:
        b = cast(b, dtype)
    if on_device:
        engine = engine_for("vecdot", (a, b))
        result = answer(engine, "vecdot", engine.compute("vecdot", a, b))
        return result if result.dtype == dtype_object(dtype) else cast(result, dtype)
    if needs_contiguous(loop, True, dtype):
        a, b = laid_plain(a), laid_plain(b)
    return vecdot_walk(a, b, loop)


cdef BaseArray axis_last(BaseArray x, int axis):
    """Return a view of `x` with one axis moved to the end."""
    cdef BaseArray view
    cdef int i, last = x.ndim - 1, source = 0
    if axis == last:
        return x
    view = new_view(x, x.ndim)
    for i in range(last):
        source = i if i < axis else i + 1
        view.shape[i] = x.shape[source]
        view.strides[i] = x.strides[source]
    view.shape[last] = x.shape[axis]
    view.strides[last] = x.strides[axis]
    set_layout(view)
    return view


cdef BaseArray vecdot_walk(BaseArray a, BaseArray b, const Loop *loop):
    cdef Operands operands
    cdef Walk batch
    cdef Cores cores
    cdef Strided stack
    cdef BaseArray out
    memset(&cores, 0, sizeof(cores))
    batch.nops = 3
    batch.ndim = a.ndim - 1
    memcpy(batch.shape, a.shape, batch.ndim * sizeof(Py_ssize_t))
    batch.ndim = broadcast_into(batch.ndim, batch.shape, b.ndim - 1, b.shape)
    if batch.ndim < 0:
        raise shape_error("vecdot (its stacks of vectors)", a, b)
    out = new_empty(loop.out_dtype, batch.ndim, batch.shape)
    if out.size == 0:
        return out
    cores.sizes[0] = a.shape[a.ndim - 1]
    if cores.sizes[0] == 0:
        fill(out, 0)
        return out
    operands.count = 0
    put(&operands, a)
    put(&operands, b)
    put(&operands, out)
    if loop.function == NULL or may_report() and reports():
        call_public(VECDOT, &operands, loop)
        return out
    cores.loop = loop
    cores.strides[0] = a.strides[a.ndim - 1]
    cores.strides[1] = b.strides[b.ndim - 1]
    strided(a, &stack)
    stack.ndim -= 1
    broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[0])
    strided(b, &stack)
    stack.ndim -= 1
    broadcast_strides(&stack, batch.ndim, batch.shape, batch.strides[1])
    memcpy(batch.strides[2], out.strides, batch.ndim * sizeof(Py_ssize_t))
    walk_merge(&batch)
    run_cores(&operands, &batch, &cores, ndx_multiply_most(out.size, cores.sizes[0]),
              "vecdot")
    return out


# ---- NumPy's `dot`, `outer` and `norm` -----------------------------------------------

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_MatrixProduct2(object a, object b, cnp.ndarray out)

cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SQRT = find_ufunc("sqrt")


cdef bint is_plain_product(BaseArray x, BaseArray y) noexcept:
    """Whether `dot` is `matmul`, to the last bit.

    For axes of one element, or in other layouts, the two functions add in different
    orders, and zeros get different signs.
    """
    cdef int axis
    if x.dtype != y.dtype or kind_of[x.dtype] < KIND_FLOAT or x.ndim > 2 or y.ndim > 2 \
            or not x.c_contiguous or not y.c_contiguous \
            or x.size >= LARGE or y.size >= LARGE:
        return False
    for axis in range(x.ndim):
        if x.shape[axis] < 2:
            return False
    for axis in range(y.ndim):
        if y.shape[axis] < 2:
            return False
    return True


cdef BaseArray ones_shaped(BaseArray x, int ndim):
    """Return a view of one element, with axes of length 1."""
    cdef BaseArray view = new_view(x, ndim)
    cdef int axis
    for axis in range(ndim):
        view.shape[axis] = 1
        view.strides[axis] = itemsize_of[x.dtype]
    set_layout(view)
    return view


cdef BaseArray dot(BaseArray x, BaseArray y):
    """Return `numpy.dot` of two arrays; None for what is left to NumPy."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Operands operands
    cdef BaseArray result
    cdef int ndim = x.ndim + y.ndim - 2, dtype = promote_table[x.dtype][y.dtype]
    if x.ndim == 0 or y.ndim == 0 or x.block.device or y.block.device \
            or ndim > MAXDIMS \
            or x.shape[x.ndim - 1] != y.shape[y.ndim - 2 if y.ndim > 1 else 0]:
        return None
    if is_plain_product(x, y):
        if ndim == 0 and kind_of[dtype] == KIND_FLOAT:
            return vecdot_walk(x, y, loop_of(VECDOT, dtype))
        return matmul(x, y, None)
    if x.size == 1 and y.size == 1 and kind_of[dtype] <= KIND_FLOAT \
            and has_arithmetic(dtype):
        # A zero keeps its sign, as NumPy's product does. NumPy's loop for float16
        # starts with 0 and adds the product to it.
        return binary(MULTIPLY, ones_shaped(x, ndim), ones_shaped(y, ndim), None)
    if x.dtype != dtype:
        x = cast(x, dtype)
    if y.dtype != dtype:
        y = cast(y, dtype)
    memcpy(shape, x.shape, (x.ndim - 1) * sizeof(Py_ssize_t))
    if y.ndim > 1:
        memcpy(shape + x.ndim - 1, y.shape, (y.ndim - 2) * sizeof(Py_ssize_t))
        shape[ndim - 1] = y.shape[y.ndim - 1]
    result = new_empty(dtype, ndim, shape)
    operands.count = 0
    put(&operands, x)
    put(&operands, y)
    put(&operands, result)
    hold(&operands)
    try:
        PyArray_MatrixProduct2(view_of(&operands, 0), view_of(&operands, 1),
                               <cnp.ndarray>view_of(&operands, 2))
    finally:
        let_go(&operands)
    return result


cdef BaseArray flattened(BaseArray x):
    """Return a view of a contiguous array with one axis, in the order of memory."""
    cdef BaseArray view = new_view(x, 1)
    view.shape[0] = x.size
    view.strides[0] = itemsize_of[x.dtype]
    set_layout(view)
    return view


cdef BaseArray correlated(BaseArray x, BaseArray y, int mode):
    """Return `numpy.correlate` of two small vectors of one real dtype.

    `mode` is 0 for "valid", 1 for "same", 2 for "full".
    """
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    put(&operands, y)
    hold(&operands)
    try:
        found = PyArray_Correlate2(view_of(&operands, 0), view_of(&operands, 1), mode)
    finally:
        let_go(&operands)
    return own_result(found)


cdef BaseArray flat_norm(BaseArray x):
    """Return `numpy.linalg.norm` of all elements; None for what is left to NumPy."""
    if x.block.device or kind_of[x.dtype] > KIND_FLOAT \
            or not (x.c_contiguous or x.f_contiguous):
        return None
    if kind_of[x.dtype] < KIND_FLOAT:
        x = cast(x, FLOAT64)
    x = flattened(x)
    x = vecdot_walk(x, x, loop_of(VECDOT, x.dtype))
    return unary(SQRT, x, x)


cdef BaseArray outer(Ufunc ufunc, BaseArray x, BaseArray y):
    """Return the results for all pairs of elements."""
    cdef BaseArray view = new_view(x, x.ndim + y.ndim)
    cdef int axis
    for axis in range(x.ndim):
        view.shape[axis] = x.shape[axis]
        view.strides[axis] = x.strides[axis]
    for axis in range(x.ndim, view.ndim):
        view.shape[axis] = 1
        view.strides[axis] = itemsize_of[x.dtype]
    set_layout(view)
    return binary(ufunc, view, y, None)


# ---- Euclidean norms -----------------------------------------------------------------

cdef Ufunc CONJ = find_ufunc("conj")


cdef BaseArray euclidean(BaseArray x, object axis, bint keepdims):
    """Return the norms over axes (None: all), as NumPy computes them.

    None: other layouts, whose elements NumPy adds in another order, and arrays on a
    device.
    """
    cdef BaseArray squares, total
    if x.block.device or not x.c_contiguous:
        return None
    if kind_of[x.dtype] < KIND_FLOAT:
        x = cast(x, FLOAT64)
    if kind_of[x.dtype] == KIND_COMPLEX:
        squares = part(binary(MULTIPLY, unary(CONJ, x, None), x, None), 0)
    else:
        squares = binary(MULTIPLY, x, x, None)
    total = reduce(ADD, squares, axis, keepdims)
    return unary(SQRT, total, total)


def euclidean_norm(x, axis, keepdims):
    """Return the norms over axes (None: all); None: it is left to NumPy."""
    return euclidean(x, axis, keepdims)

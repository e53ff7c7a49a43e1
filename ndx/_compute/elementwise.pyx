"""Computing on arrays: promotion, broadcasting and results around the C loops.

Allocations and casts may run Python, and so end scopes. So pointers are taken, and
operands held where the GIL is released, when all arrays are there (`_array.pinning`).
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from libc.string cimport memcpy, memmove, memset

import numpy as np

from ndx._array.dispatch cimport compute_elsewhere, is_off_host
from ndx._array.pinning cimport (
    Operands, compute_on, hold, let_go, locate, put, put_constant, recheck_all, view_of,
)
from ndx._array.storage cimport (
    BaseArray, check, check_usable, data_of, from_numpy, has_shape, is_array,
    new_contiguous_like, new_like, new_ordered, recheck, require_writeable, strided,
)
from ndx._blocks.block cimport block_is_live
from ndx._compute.fp_warnings cimport restore, silence
from ndx._compute.loops cimport Loop, Ufunc, loop_of, run_elementwise
from ndx._compute.passes.copying cimport copy_walk
from ndx._compute.passes.run cimport run_large
from ndx._files.mapping cimport losses
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, FLOAT32, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, dtype_code,
    dtype_object, itemsize_of, kind_of, promote_table, scalar_dtype, store_scalar,
    typenum_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, byte_bounds,
    memory_order, shape_tuple, walk_merge, walk_order,
)

cnp.import_array()

cdef extern from "Python.h":
    PyObject *PyErr_Occurred() noexcept

cdef extern from "numpy/arrayobject.h":
    int PyArray_CopyInto(cnp.ndarray out, cnp.ndarray x) except -1
    object make_scalar_view "PyArray_SimpleNewFromData" (
        int ndim, const Py_ssize_t *shape, int typenum, void *data)

cdef extern from "ndx/operators.h":
    bint NDX_CALCULATES(object x) noexcept
    bint NDX_REPEATS(object x) noexcept

cdef extern from "ndx/fill.h" nogil:
    void ndx_fill(char *dst, size_t nbytes, const char *item, size_t itemsize) noexcept

cdef object ndarray = np.ndarray
cdef object generic = np.generic


# ---------------------------------------------------------------- operands

cdef bint is_scalar(object x) noexcept:
    """Whether `x` is a Python scalar: its dtype follows the array's."""
    cls = type(x)
    if cls is float or cls is int or cls is bool or cls is complex:
        return True
    return isinstance(x, (int, float, complex)) and not isinstance(x, generic)


cdef BaseArray as_operand(object x):
    """Return an array over `x` if it is one, or NumPy's, or a NumPy scalar."""
    cdef BaseArray result
    if is_array(x):
        return x
    if isinstance(x, ndarray):
        result = from_numpy(x)
        if result is None:
            # Misaligned or byte-swapped; of a dtype that we don't have: TypeError.
            dtype = dtype_object(dtype_code(x.dtype.newbyteorder("=")))
            result = from_numpy(np.array(x, dtype=dtype, order="K", copy=True))
        return result
    if isinstance(x, generic):
        dtype_code(x.dtype)
        return from_numpy(np.asarray(x))
    return None


cdef object operand_error(Ufunc ufunc, object x1, object x2):
    bad = x2 if is_array(x1) or is_scalar(x1) or isinstance(x1, (ndarray, generic)) \
        else x1
    return TypeError(
        f"{ufunc.name} does not take a {type(bad).__name__}; valid are arrays (convert "
        "with ndx.asarray) and Python scalars next to an array")


cdef object refused(Ufunc ufunc, object x1, object x2):
    """Return NotImplemented from an operator; raise where Python goes on by itself.

    It would repeat a sequence, or find that an array and a list are not equal.
    """
    cdef object other = x2 if is_array(x1) else x1
    if isinstance(other, (list, tuple)) and not NDX_CALCULATES(other) or \
            ufunc.name == "multiply" and NDX_REPEATS(other):
        raise operand_error(ufunc, x1, x2)
    return NotImplemented


cdef object shape_error(str name, BaseArray a, BaseArray b):
    return ValueError(
        f"{name}: shapes {shape_tuple(a.ndim, a.shape)} and "
        f"{shape_tuple(b.ndim, b.shape)} can't be broadcast together; counted from "
        "the last, axes must be equal or 1")


cdef bint overlaps(BaseArray out, BaseArray x) noexcept:
    """Whether a write to `out` may change an element of `x` not yet read."""
    cdef Strided a, b
    cdef Py_ssize_t low_a = 0, high_a = 0, low_b = 0, high_b = 0
    cdef int axis
    strided(out, &a)
    strided(x, &b)
    byte_bounds(&a, itemsize_of[a.dtype], &low_a, &high_a)
    byte_bounds(&b, itemsize_of[b.dtype], &low_b, &high_b)
    if a.data + high_a <= b.data + low_b or b.data + high_b <= a.data + low_a:
        return False
    if a.data != b.data or a.ndim != b.ndim or \
            itemsize_of[a.dtype] != itemsize_of[b.dtype]:
        return True
    for axis in range(a.ndim):
        if a.shape[axis] != b.shape[axis] or a.strides[axis] != b.strides[axis]:
            return True
    return False


# ---------------------------------------------------------------- copies

cdef int require_castable(int dtype, int into) except -1:
    """Raise the TypeError for values that are no others of a dtype."""
    if kind_of[dtype] == KIND_COMPLEX and kind_of[into] != KIND_COMPLEX \
            and into != BOOL:
        raise TypeError(
            f"{dtype_object(dtype)} can't be cast to {dtype_object(into)}: the "
            "imaginary parts would be lost; take ndx.real(x) or ndx.abs(x)")
    return 0


cdef int copy_into(BaseArray out, BaseArray x) except -1:
    """Copy `x`, broadcast and cast, into `out`; they may overlap."""
    cdef Py_ssize_t nbytes = out.size * itemsize_of[out.dtype]
    cdef bint plain = out.dtype == x.dtype and out.c_contiguous and x.c_contiguous \
        and out.size == x.size and nbytes < LARGE
    cdef Operands operands
    require_writeable(out)
    if out.dtype != x.dtype:
        require_castable(x.dtype, out.dtype)
    if not plain and overlaps(out, x):
        # NumPy looks for this too, but not where both have one axis: its
        # a[::2] = a[:5] copies what it has overwritten.
        x = copy(x)
    operands.count = 0
    put(&operands, x)
    put(&operands, out)
    if plain:
        locate(&operands)
        memmove(operands.data[1], operands.data[0], nbytes)
        return recheck_all(&operands)
    if x.size == 1 and out.dtype == x.dtype and out.c_contiguous and out.size < LARGE:
        return fill_contiguous(&operands, out)
    hold(&operands)
    try:
        if out.size < LARGE or not copy_in_pass(&operands, out, x):
            copy_by_numpy(&operands, out, x)
    finally:
        let_go(&operands)
    return 0


cdef int copy_by_numpy(Operands *held, BaseArray out, BaseArray x) except -1:
    """Copy operand 0 to operand 1, in any layout and dtype."""
    cdef object token = None
    if x.size == 1 and out.dtype == x.dtype and out.c_contiguous:
        return fill_contiguous(held, out)
    if kind_of[x.dtype] >= KIND_FLOAT and out.dtype != x.dtype and (
            kind_of[out.dtype] < KIND_FLOAT or out.dtype == FLOAT32
            or out.dtype == COMPLEX64):
        # NumPy would warn of what overflows, or is no number.
        token = silence()
    try:
        PyArray_CopyInto(<cnp.ndarray>view_of(held, 1), <cnp.ndarray>view_of(held, 0))
    finally:
        if token is not None:
            restore(token)
    return 0


cdef int fill(BaseArray out, object scalar) except -1:
    """Write a Python scalar to every element of `out`."""
    cdef char[16] value
    cdef Operands operands
    store_scalar(scalar, out.dtype, value)
    require_writeable(out)
    operands.count = 0
    put_constant(&operands, value)
    put(&operands, out)
    if out.size < LARGE and out.c_contiguous:
        return fill_contiguous(&operands, out)
    hold(&operands)
    try:
        if out.size >= LARGE and run_copy(&operands, out, NULL, out.dtype, "fill"):
            pass
        elif out.c_contiguous:
            fill_contiguous(&operands, out)
        else:
            PyArray_CopyInto(
                <cnp.ndarray>view_of(&operands, 1),
                <cnp.ndarray>make_scalar_view(0, NULL, typenum_of[out.dtype], value))
    finally:
        let_go(&operands)
    return 0


# How many bytes of which elements are written.
cdef struct Fill:
    size_t nbytes
    size_t itemsize


cdef int fill_contiguous(Operands *operands, BaseArray out) except -1:
    """Let all elements of operand 1, `out`, be that which operand 0 is."""
    cdef Fill fill
    fill.itemsize = itemsize_of[out.dtype]
    fill.nbytes = out.size * fill.itemsize
    return compute_on(operands, NULL, run_fill, &fill, out.size >= LARGE)


cdef void run_fill(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Fill *fill = <const Fill *>arg
    ndx_fill(data[1], fill.nbytes, data[0], fill.itemsize)


cdef bint copy_in_pass(const Operands *held, BaseArray out, BaseArray x) except -1:
    """Copy arrays that are large and in files; return whether they were."""
    cdef Strided layout
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    memcpy(shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    if x.ndim > out.ndim or broadcast_into(out.ndim, shape, x.ndim, x.shape) < 0 \
            or not has_shape(out, out.ndim, shape):
        return False
    strided(x, &layout)
    broadcast_strides(&layout, out.ndim, shape, strides)
    return run_copy(held, out, strides, x.dtype, "copy")


cdef bint run_copy(const Operands *held, BaseArray out, const Py_ssize_t *strides,
                   int dtype, str name) except -1:
    """Copy operand 0 to `out`, operand 1, if one is in a file, else return False.

    Without strides, all elements become the first one of operand 0.
    """
    cdef Walk walk
    walk.ndim = out.ndim
    walk.nops = 2
    memcpy(walk.shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], out.strides, out.ndim * sizeof(Py_ssize_t))
    memset(walk.strides[0], 0, out.ndim * sizeof(Py_ssize_t))
    if strides != NULL:
        memcpy(walk.strides[0], strides, out.ndim * sizeof(Py_ssize_t))
    walk_order(&walk)
    walk_merge(&walk)
    return copy_walk(held, &walk, dtype, out.dtype, name)


cdef BaseArray copy(BaseArray x):
    return cast(x, x.dtype)


cdef BaseArray cast(BaseArray x, int dtype):
    """Return a new array with the values of `x` in another dtype."""
    cdef BaseArray result
    check_usable(x)
    require_castable(x.dtype, dtype)
    if x.block.device:
        return compute_elsewhere("cast", (x, dtype_object(dtype)), {})
    result = new_like(x, dtype, False, None)
    copy_into(result, x)
    return result


cdef bint can_store(int dtype, int into) noexcept:
    """Whether values of `dtype` keep their kind when stored in an array of `into`."""
    cdef int kind = kind_of[dtype], target = kind_of[into]
    if kind == KIND_INT or kind == KIND_UINT:
        return target == KIND_INT or target == KIND_UINT or target >= KIND_FLOAT
    return kind <= target


# ---------------------------------------------------------------- elementwise

cdef object elsewhere(Ufunc ufunc, tuple operands, BaseArray out):
    """Compute an operation on a device."""
    return compute_elsewhere(ufunc.name, operands, {} if out is None else {"out": out})


cdef object unary(Ufunc ufunc, BaseArray x, BaseArray out):
    if x.block.device:
        return elsewhere(ufunc, (x,), out)
    return compute(ufunc, x, None, NULL, x.dtype, out)


cdef object binary(Ufunc ufunc, object x1, object x2, BaseArray out):
    """Compute an operation of two operands; NotImplemented if one can't be one."""
    cdef BaseArray a, b
    cdef char[16] value
    cdef int dtype
    if is_array(x1):
        a = <BaseArray>x1
        if is_array(x2):
            b = <BaseArray>x2
            if a.block.device | b.block.device:
                return elsewhere(ufunc, (x1, x2), out)
            return compute(ufunc, a, b, NULL, promote_table[a.dtype][b.dtype], out)
        if is_scalar(x2):
            if a.block.device:
                return elsewhere(ufunc, (x1, x2), out)
            dtype = scalar_dtype(a.dtype, x2)
            store_scalar(x2, loop_of(ufunc, dtype).in_dtype, value)
            return compute(ufunc, a, None, value, dtype, out)
    elif is_array(x2) and is_scalar(x1):
        b = <BaseArray>x2
        if b.block.device:
            return elsewhere(ufunc, (x1, x2), out)
        dtype = scalar_dtype(b.dtype, x1)
        store_scalar(x1, loop_of(ufunc, dtype).in_dtype, value)
        return compute(ufunc, None, b, value, dtype, out)
    a = as_operand(x1)
    b = as_operand(x2)
    if (a is None and not is_scalar(x1)) or (b is None and not is_scalar(x2)) \
            or (a is None and b is None):
        return NotImplemented
    if is_off_host(a) or is_off_host(b):
        return elsewhere(ufunc, (x1, x2), out)
    return binary(ufunc, x1 if a is None else a, x2 if b is None else b, out)


cdef object inplace(Ufunc ufunc, BaseArray x, object other):
    """Compute ``x = x op other`` in the memory of `x`; x, or NotImplemented."""
    cdef BaseArray b = None
    cdef int dtype, result
    if x.block.device or is_off_host(other):
        if not is_scalar(other) and as_operand(other) is None:
            return NotImplemented
        return compute_elsewhere("inplace", (ufunc.name, x, other), {})
    check(x)
    if is_scalar(other):
        dtype = scalar_dtype(x.dtype, other)
    else:
        b = as_operand(other)
        if b is None:
            return NotImplemented
        check(b)
        dtype = promote_table[x.dtype][b.dtype]
        other = b
    result = loop_of(ufunc, dtype).out_dtype
    if result != x.dtype:
        if not can_store(result, x.dtype) or (
                kind_of[result] == KIND_INT and kind_of[x.dtype] == KIND_UINT):
            raise TypeError(
                f"{ufunc.name} of {dtype_object(x.dtype)} and "
                f"{dtype_object(b.dtype) if b is not None else type(other).__name__} "
                f"is {dtype_object(result)}, which can't be cast to the dtype of the "
                f"array in place, {dtype_object(x.dtype)}; use x = x op y, or "
                "ndx.astype")
        # Computed as if not in place, for an operand that does not fit the array's
        # dtype; then stored in that.
        return store_inplace(ufunc, x, binary(ufunc, x, other, None))
    if binary(ufunc, x, other, x) is NotImplemented:
        return NotImplemented
    return x


cdef object store_inplace(Ufunc ufunc, BaseArray x, object result):
    if result is NotImplemented:
        return result
    if not has_shape(x, (<BaseArray>result).ndim, (<BaseArray>result).shape):
        raise output_shape_error(ufunc, x, (<object>result).shape)
    copy_into(x, <BaseArray>result)
    return x


cdef object output_shape_error(Ufunc ufunc, BaseArray out, tuple shape):
    return ValueError(
        f"{ufunc.name}: the output has shape {shape_tuple(out.ndim, out.shape)}, but "
        f"the operands broadcast to {shape}")


cdef object compute(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar, int dtype,
                    BaseArray out):
    """Run a ufunc's loop; `scalar` stands for the operand that is None.

    Of one operand (unary) `a` is that and `b` None, with no scalar.
    """
    cdef const Loop *loop = loop_of(ufunc, dtype)
    cdef char *args[3]
    cdef Py_ssize_t steps[3]
    cdef BaseArray first = a if a is not None else b
    cdef BaseArray result
    cdef Py_ssize_t size
    # The common case: contiguous operands of one shape, or with a scalar.
    if out is None and first.c_contiguous and first.dtype == loop.in_dtype \
            and loop.function != NULL and (a is None or b is None or (
                b.dtype == loop.in_dtype and b.c_contiguous
                and has_shape(a, b.ndim, b.shape))):
        check(first)
        if b is not None:
            check(b)
        result = new_contiguous_like(first, loop.out_dtype)
        size = result.size
        steps[0] = steps[1] = itemsize_of[loop.in_dtype]
        if a is None:
            steps[0] = 0
        if ufunc.nin == 1:
            steps[1] = itemsize_of[loop.out_dtype]
        else:
            if b is None:
                steps[1] = 0
            steps[2] = itemsize_of[loop.out_dtype]
        if size >= LARGE:
            run_flat(ufunc, loop, a, b, scalar, result, steps)
        elif size:
            # The allocation may have run Python. From here on none runs.
            while not (block_is_live(first.block) and block_is_live(result.block)
                       and (b is None or block_is_live(b.block))):
                check(first)
                check(result)
                if b is not None:
                    check(b)
            args[0] = data_of(a) if a is not None else scalar
            args[1] = data_of(b) if b is not None else scalar
            args[ufunc.nin] = data_of(result)
            loop.function(args, &size, steps, loop.data)
        if ufunc.raises and PyErr_Occurred() != NULL:
            raise_current()
        if losses[0] != 0:
            recheck(first)
            if b is not None:
                recheck(b)
            recheck(result)
        return result
    return compute_general(ufunc, a, b, scalar, loop, out)


cdef int run_flat(Ufunc ufunc, const Loop *loop, BaseArray a, BaseArray b,
                  char *scalar, BaseArray result, const Py_ssize_t *steps) except -1:
    """Compute many elements of contiguous operands."""
    cdef Operands operands
    cdef Walk walk
    cdef int op
    put_inputs(&operands, ufunc, a, b, scalar)
    put(&operands, result)
    walk.ndim = 1
    walk.nops = operands.count
    walk.shape[0] = result.size
    for op in range(walk.nops):
        walk.strides[op][0] = steps[op]
    return run_loop(ufunc, loop, &operands, &walk)


cdef void put_inputs(Operands *operands, Ufunc ufunc, BaseArray a, BaseArray b,
                     char *scalar) noexcept:
    """Begin with the operands of an operation; `scalar` stands for one that is None."""
    cdef int op
    operands.count = 0
    for op in range(ufunc.nin):
        if (a if op == 0 else b) is None:
            put_constant(operands, scalar)
        else:
            put(operands, a if op == 0 else b)


cdef int run_loop(Ufunc ufunc, const Loop *loop, Operands *operands,
                  const Walk *walk) except -1:
    """Compute many elements."""
    cdef Py_ssize_t itemsizes[3]
    itemsizes[0] = itemsizes[1] = itemsize_of[loop.in_dtype]
    itemsizes[ufunc.nin] = itemsize_of[loop.out_dtype]
    # A loop that raises takes the GIL to do so.
    return run_large(operands, walk, itemsizes, compute_loop, <void *>loop, ufunc.name,
                     ufunc.raises)


cdef void compute_loop(void *loop, char **data, const Walk *walk) noexcept nogil:
    run_elementwise(<const Loop *>loop, walk.nops, data, walk)


cdef int raise_current() except -1:
    """Raise the Python error that a loop has set."""
    return -1


cdef object compute_general(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar,
                            const Loop *loop, BaseArray out):
    """The same for any layout, with casts, broadcasting and an output given."""
    if a is not None:
        check(a)
        if a.dtype != loop.in_dtype:
            a = cast(a, loop.in_dtype)
    if b is not None:
        check(b)
        if b.dtype != loop.in_dtype:
            b = cast(b, loop.in_dtype)
    if out is not None:
        require_writeable(out)
        if out.dtype != loop.out_dtype:
            raise TypeError(
                f"out has dtype {dtype_object(out.dtype)}, but the result of "
                f"{ufunc.name} has dtype {dtype_object(loop.out_dtype)}")
        if a is not None and overlaps(out, a):
            a = copy(a)
        if b is not None and overlaps(out, b):
            b = copy(b)
    return compute_walk(ufunc, a, b, scalar, loop, out)


cdef object compute_walk(Ufunc ufunc, BaseArray a, BaseArray b, char *scalar,
                         const Loop *loop, BaseArray out):
    cdef Strided layouts[2]
    cdef Strided *ops[2]
    cdef Operands operands
    cdef Walk walk
    cdef int order[MAXDIMS]
    cdef int nin = ufunc.nin, nops = 0, op
    cdef BaseArray operand, first = a if a is not None else b
    walk.ndim = first.ndim
    memcpy(walk.shape, first.shape, first.ndim * sizeof(Py_ssize_t))
    if a is not None and b is not None:
        walk.ndim = broadcast_into(walk.ndim, walk.shape, b.ndim, b.shape)
        if walk.ndim < 0:
            raise shape_error(ufunc.name, a, b)
    for op in range(nin):
        operand = a if op == 0 else b
        if operand is None:
            memset(walk.strides[op], 0, walk.ndim * sizeof(Py_ssize_t))
            continue
        strided(operand, &layouts[nops])
        broadcast_strides(&layouts[nops], walk.ndim, walk.shape, walk.strides[op])
        ops[nops] = &layouts[nops]
        nops += 1
    if out is None:
        memory_order(walk.ndim, nops, ops, order)
        out = new_ordered(loop.out_dtype, walk.ndim, walk.shape, order, False, None)
    elif not has_shape(out, walk.ndim, walk.shape):
        raise output_shape_error(ufunc, out, shape_tuple(walk.ndim, walk.shape))
    if out.size == 0:
        return out
    put_inputs(&operands, ufunc, a, b, scalar)
    put(&operands, out)
    if loop.function == NULL:
        call_public(ufunc, &operands, loop)
        return out
    memcpy(walk.strides[nin], out.strides, walk.ndim * sizeof(Py_ssize_t))
    walk.nops = nin + 1
    walk_order(&walk)
    walk_merge(&walk)
    if out.size >= LARGE:
        run_loop(ufunc, loop, &operands, &walk)
    else:
        compute_on(&operands, &walk, compute_loop, <void *>loop, False)
    if ufunc.raises and PyErr_Occurred() != NULL:
        raise_current()
    return out


cdef int call_public(Ufunc ufunc, Operands *operands, const Loop *loop) except -1:
    """Compute through NumPy's public function, into our memory."""
    token = silence()
    try:
        hold(operands)
        try:
            views = views_of(operands, typenum_of[loop.in_dtype])
            out = views.pop()
            ufunc.public(*views, out=out)
        finally:
            let_go(operands)
    finally:
        restore(token)
    return 0


cdef list views_of(const Operands *held, int typenum):
    """Return NumPy arrays over operands; constants are of a type of NumPy's."""
    return [
        make_scalar_view(0, NULL, typenum, held.data[i]) if held.arrays[i] == NULL
        else view_of(held, i)
        for i in range(held.count)]

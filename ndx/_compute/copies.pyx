"""Copies, casts and fills, in any layout and dtype, on the CPU or a device."""

cimport numpy as cnp
from libc.string cimport memcpy, memmove, memset

from ndx._array.dispatch cimport device_engine
from ndx._array.pinning cimport (
    Operands, compute_on, hold, let_go, locate, put, put_constant, recheck_all, view_of,
)
from ndx._array.storage cimport (
    BaseArray, has_shape, new_like, require_usable, require_writeable, strided,
)
from ndx._compute.kernels cimport can_cast, cast_data, run_cast, run_copy
from ndx._compute.loops cimport run_elementwise, run_short
from ndx._compute.numpy_private cimport reporting, restore, silence
from ndx._compute.passes.copying cimport copy_walk
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, FLOAT32, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT,
    dtype_object, itemsize_of, kind_of, store_scalar, typenum_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, byte_bounds, walk_merge,
    walk_order,
)

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_CopyInto(cnp.ndarray out, cnp.ndarray x) except -1
    object make_scalar_view "PyArray_SimpleNewFromData" (
        int ndim, const Py_ssize_t *shape, int typenum, void *data)

cdef extern from "ndx/internal/fill.h" nogil:
    void ndx_fill(char *dst, size_t nbytes, const char *item, size_t itemsize) noexcept

cdef extern from "ndx/internal/move.h" nogil:
    void ndx_move(char *out, Py_ssize_t out_row, Py_ssize_t out_step, const char *x,
                  Py_ssize_t x_row, Py_ssize_t x_step, Py_ssize_t rows,
                  Py_ssize_t length, size_t itemsize)
    void ndx_spread(char *out, const char *x, Py_ssize_t x_row, Py_ssize_t rows,
                    Py_ssize_t length, size_t itemsize)

cdef enum:
    SHORT = 24                   # elements: rows up to here are copied together
    FEW = 1024                   # elements: NumPy's loops are faster, but begin slowly


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


cdef int require_castable(int dtype, int into) except -1:
    """Raise TypeError if a cast between two dtypes would lose the imaginary part."""
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
    if out.block.device | x.block.device:
        device_engine().copy_into(out, x)
        return 0
    if not plain and overlaps(out, x):
        # NumPy checks this, too, but not for two arrays of one axis: its
        # a[::2] = a[:5] reads elements that it has overwritten.
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
    if 0 < out.size <= FEW and copy_by_loop(&operands, out, x):
        return 0
    hold(&operands)
    try:
        if out.size < LARGE or not copy_in_pass(&operands, out, x):
            copy_by_numpy(&operands, out, x)
    finally:
        let_go(&operands)
    return 0


cdef void plain_copy(Conversion *conversion, int dtype) noexcept:
    """Set a conversion that copies elements of a dtype."""
    conversion.same = True
    conversion.itemsizes = [itemsize_of[dtype], itemsize_of[dtype]]
    conversion.loop.function = run_copy
    conversion.loop.data = <void *>conversion.itemsizes[0]


cdef bint copy_by_loop(Operands *operands, BaseArray out, BaseArray x) except -1:
    """Copy operand 0 to a small operand 1; False: that is left to NumPy."""
    cdef Conversion conversion
    cdef Strided layout
    cdef Walk walk
    if x.dtype == out.dtype:
        plain_copy(&conversion, x.dtype)
    elif reporting == 0 and can_cast(x.dtype, out.dtype):
        conversion.same = False
        conversion.itemsizes = [itemsize_of[x.dtype], itemsize_of[out.dtype]]
        conversion.loop.function = run_cast
        conversion.loop.data = cast_data(x.dtype, out.dtype)
    else:
        return False
    walk.nops = 2
    walk.ndim = out.ndim
    memcpy(walk.shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], out.strides, out.ndim * sizeof(Py_ssize_t))
    if has_shape(x, out.ndim, out.shape):
        memcpy(walk.strides[0], x.strides, out.ndim * sizeof(Py_ssize_t))
    else:
        if x.ndim > out.ndim or broadcast_into(
                walk.ndim, walk.shape, x.ndim, x.shape) < 0 \
                or not has_shape(out, walk.ndim, walk.shape):
            return False
        strided(x, &layout)
        broadcast_strides(&layout, walk.ndim, walk.shape, walk.strides[0])
    walk_order(&walk)
    walk_merge(&walk)
    compute_on(operands, &walk, run_conversion, &conversion, False)
    return True


cdef void run_conversion(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy or cast operand 0 to operand 1. Short rows are copied together."""
    cdef const Conversion *conversion = <const Conversion *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef char *at[2]
    cdef int last = walk.ndim - 1
    cdef bint repeats
    if not conversion.same:
        run_short(&conversion.loop, 2, data, walk, conversion.itemsizes)
        return
    if last < 1 or walk.shape[last] > SHORT:
        run_elementwise(&conversion.loop, 2, data, walk)
        return
    at = [data[0], data[1]]
    start_walk(last - 1, index)
    repeats = walk.strides[0][last] == 0 \
        and walk.strides[1][last] == conversion.itemsizes[1] \
        and walk.strides[1][last - 1] == walk.shape[last] * conversion.itemsizes[1]
    while True:
        if repeats:
            ndx_spread(at[1], at[0], walk.strides[0][last - 1], walk.shape[last - 1],
                       walk.shape[last], conversion.itemsizes[0])
        else:
            ndx_move(at[1], walk.strides[1][last - 1], walk.strides[1][last], at[0],
                     walk.strides[0][last - 1], walk.strides[0][last],
                     walk.shape[last - 1], walk.shape[last], conversion.itemsizes[0])
        if not step_walk(walk, last - 1, index, 2, at):
            return


cdef int copy_by_numpy(Operands *held, BaseArray out, BaseArray x) except -1:
    """Copy operand 0 to operand 1, in any layout and dtype."""
    cdef object token = None
    if x.size == 1 and out.dtype == x.dtype and out.c_contiguous:
        return fill_contiguous(held, out)
    if kind_of[x.dtype] >= KIND_FLOAT and out.dtype != x.dtype and (
            kind_of[out.dtype] < KIND_FLOAT or out.dtype == FLOAT32
            or out.dtype == COMPLEX64):
        # NumPy would warn of overflow and NaN.
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
    if out.block.device:
        device_engine().fill(
            out, make_scalar_view(0, NULL, typenum_of[out.dtype], value).copy())
        return 0
    operands.count = 0
    put_constant(&operands, value)
    put(&operands, out)
    if out.size < LARGE and out.c_contiguous:
        return fill_contiguous(&operands, out)
    if out.size <= FEW:
        return fill_strided(&operands, out)
    hold(&operands)
    try:
        if out.size >= LARGE and run_large_copy(
                &operands, out, NULL, out.dtype, "fill"):
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


# Arguments of a fill.
cdef struct Fill:
    size_t nbytes
    size_t itemsize


cdef int fill_contiguous(Operands *operands, BaseArray out) except -1:
    """Copy the one element of operand 0 to all elements of operand 1, `out`."""
    cdef Fill fill
    fill.itemsize = itemsize_of[out.dtype]
    fill.nbytes = out.size * fill.itemsize
    return compute_on(operands, NULL, run_fill, &fill, out.size >= LARGE)


cdef int fill_strided(Operands *operands, BaseArray out) except -1:
    """Copy the one element of operand 0 to all of operand 1, `out`, with gaps."""
    cdef Conversion conversion
    cdef Walk walk
    plain_copy(&conversion, out.dtype)
    walk.nops = 2
    walk.ndim = out.ndim
    memcpy(walk.shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], out.strides, out.ndim * sizeof(Py_ssize_t))
    memset(walk.strides[0], 0, out.ndim * sizeof(Py_ssize_t))
    walk_order(&walk)
    walk_merge(&walk)
    return compute_on(operands, &walk, run_conversion, &conversion, False)


cdef void run_fill(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Fill *fill = <const Fill *>arg
    ndx_fill(data[1], fill.nbytes, data[0], fill.itemsize)


cdef bint copy_in_pass(const Operands *held, BaseArray out, BaseArray x) except -1:
    """Copy in a pass if the arrays are large and in files; return whether they are."""
    cdef Strided layout
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    memcpy(shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    if x.ndim > out.ndim or broadcast_into(out.ndim, shape, x.ndim, x.shape) < 0 \
            or not has_shape(out, out.ndim, shape):
        return False
    strided(x, &layout)
    broadcast_strides(&layout, out.ndim, shape, strides)
    return run_large_copy(held, out, strides, x.dtype, "copy")


cdef bint run_large_copy(const Operands *held, BaseArray out, const Py_ssize_t *strides,
                         int dtype, str name) except -1:
    """Copy operand 0 to `out`, operand 1, if one is in a file, else return False.

    If `strides` is NULL, all elements are set to the first one of operand 0.
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
    require_usable(x)
    require_castable(x.dtype, dtype)
    result = new_like(x, dtype)
    copy_into(result, x)
    return result


cdef bint can_store(int dtype, int into) noexcept:
    """Whether values of `dtype` keep their kind when stored in an array of `into`."""
    cdef int kind = kind_of[dtype], target = kind_of[into]
    if kind == KIND_INT or kind == KIND_UINT:
        return target == KIND_INT or target == KIND_UINT or target >= KIND_FLOAT
    return kind <= target

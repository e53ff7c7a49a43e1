"""Copies, casts and fills, in any layout and dtype, on the CPU or a device."""

cimport numpy as cnp
from libc.string cimport memcpy, memmove, memset

import numpy as np

from ndx._array.dispatch cimport engine_for, engine_of
from ndx._array.pinning cimport (
    Operands, begin_all, compute_on, end_all, hold, let_go, locate, put, put_constant,
    recheck_all, view_of,
)
from ndx._array.storage cimport (
    BaseArray, new_array, new_empty, new_like, require_usable, require_writeable,
    strided,
)
from ndx._compute.aliasing cimport has_distinct_elements, overlaps
from ndx._compute.costs cimport LARGE
from ndx._compute.executor cimport run
from ndx._compute.passes.run cimport cast_walk
from ndx._compute.tiles cimport Job, begin_job, walk_size
from ndx._compute.walking cimport start_walk, step_walk
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX128, FLOAT64, KIND_COMPLEX, KIND_FLOAT, KIND_INT, KIND_UINT, NDTYPES,
    dtype_object, has_arithmetic, itemsize_of, kind_of, promote_table, typenum_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, walk_merge, walk_order,
)
from ndx._lib.numpy_private cimport may_report, reports, restore, silence


# ---- By kernels of our own, on threads if large --------------------------------------
# Casts give NumPy's values. What becomes of a float that its new dtype can't hold is
# not defined in C, and differs between compilers. Therefore a cast from floats to
# integers is compared with NumPy's, once, before it is used; so are casts of elements
# that C has no type for.

cdef extern from "ndx/internal/transfer.h" nogil:
    Cast ndx_cast_between(int dtype, int into)
    void ndx_transfer_block(const Transfer *how, char *out, Py_ssize_t out_row,
                            Py_ssize_t out_step, const char *x, Py_ssize_t x_row,
                            Py_ssize_t x_step, Py_ssize_t rows, Py_ssize_t length)

cdef extern from "ndx/internal/fill.h" nogil:
    void ndx_fill_part(char *dst, size_t nbytes, const char *item, size_t itemsize,
                       size_t whole)


# ---------------------------------------------------------------- dtypes

# Whether a cast gives NumPy's values: 1 yes, -1 no, 0 not known yet.
cdef signed char[NDTYPES][NDTYPES] equal_casts


cdef bint can_transfer(int dtype, int into) except -1:
    """Whether there is a kernel for a copy, or for a cast with NumPy's values."""
    if dtype == into:
        return True
    if ndx_cast_between(dtype, into) == NULL or may_report() and (
            kind_of[dtype] >= KIND_FLOAT or not has_arithmetic(into)) and reports():
        # NumPy reports errors of floating point.
        return False
    if has_arithmetic(dtype) and has_arithmetic(into) and (
            kind_of[dtype] != KIND_FLOAT
            or kind_of[into] != KIND_INT and kind_of[into] != KIND_UINT):
        return True
    if equal_casts[dtype][into] == 0:
        equal_casts[dtype][into] = 1 if try_cast(dtype, into) else -1
    return equal_casts[dtype][into] > 0


cdef bint try_cast(int dtype, int into) except -1:
    """Whether a cast of numbers at and beyond all limits gives NumPy's values."""
    cdef const unsigned char[::1] x
    cdef unsigned char[::1] found
    token = silence()
    try:
        # The powers of 2 that numbers end at, and their neighbours.
        edges = 2.0 ** np.arange(-30, 66)
        values = np.concatenate([
            edges, edges - 1, edges + 1, edges * (1 + 2.0**-11), edges * (1 - 2.0**-12),
            edges * (1 + 2.0**-20), [0, np.inf, np.nan, 1e308]])
        given = np.concatenate([values, -values]).astype(dtype_object(dtype))
        expected = given.astype(dtype_object(into))
    finally:
        restore(token)
    ours = np.zeros_like(expected)
    x = given.view(np.uint8)
    found = ours.view(np.uint8)
    ndx_cast_between(dtype, into)(<char *>&found[0], itemsize_of[into],
                                  <const char *>&x[0], itemsize_of[dtype], len(given))
    return ours.tobytes() == expected.tobytes()


cdef Cast cast_between(int dtype, int into) noexcept nogil:
    """Return the kernel of a cast; NULL: there is none."""
    return ndx_cast_between(dtype, into)


# ---------------------------------------------------------------- layouts

cdef bint walk_copy(BaseArray out, BaseArray x, Walk *walk) noexcept:
    """Set a walk that copies `x`, broadcast, to `out`; return whether that is possible.

    Operand 0 is `x`.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Strided layout
    cdef int axis
    if x.ndim > out.ndim:
        return False
    memcpy(shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    if broadcast_into(out.ndim, shape, x.ndim, x.shape) < 0:
        return False
    for axis in range(out.ndim):
        if shape[axis] != out.shape[axis]:
            return False
    walk.ndim = out.ndim
    walk.nops = 2
    memcpy(walk.shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], out.strides, out.ndim * sizeof(Py_ssize_t))
    strided(x, &layout)
    broadcast_strides(&layout, out.ndim, shape, walk.strides[0])
    walk_order(walk)
    walk_merge(walk)
    return True


cdef void walk_fill(BaseArray out, Walk *walk) noexcept:
    """Set a walk that copies one element to all of `out`."""
    walk.ndim = out.ndim
    walk.nops = 2
    memcpy(walk.shape, out.shape, out.ndim * sizeof(Py_ssize_t))
    memset(walk.strides[0], 0, out.ndim * sizeof(Py_ssize_t))
    memcpy(walk.strides[1], out.strides, out.ndim * sizeof(Py_ssize_t))
    walk_order(walk)
    walk_merge(walk)


# ---------------------------------------------------------------- copies

cdef void transfer_block(const Transfer *how, char *out, Py_ssize_t out_row,
                         Py_ssize_t out_step, const char *x, Py_ssize_t x_row,
                         Py_ssize_t x_step, Py_ssize_t rows,
                         Py_ssize_t length) noexcept nogil:
    """Copy or cast rows of elements; all steps are in bytes."""
    ndx_transfer_block(how, out, out_row, out_step, x, x_row, x_step, rows, length)


cdef void run_transfer(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy operand 0 to operand 1."""
    cdef const Transfer *how = <const Transfer *>arg
    cdef Py_ssize_t index[MAXDIMS]
    cdef Py_ssize_t row[2]
    cdef Py_ssize_t step[2]
    cdef Py_ssize_t rows = 1, length = 1
    cdef int op, last = walk.ndim - 1
    cdef char *at[2]
    for op in range(2):
        at[op] = data[op]
        row[op] = walk.strides[op][last - 1] if last >= 1 else 0
        step[op] = walk.strides[op][last] if last >= 0 else how.itemsize
    if last >= 0:
        length = walk.shape[last]
    if last >= 1:
        rows = walk.shape[last - 1]
    start_walk(last - 1, index)
    while True:
        ndx_transfer_block(how, at[1], row[1], step[1], at[0], row[0], step[0], rows,
                           length)
        if not step_walk(walk, last - 1, index, 2, at):
            return


# A fill of contiguous memory, of which parts are filled.
cdef struct Fill:
    Py_ssize_t itemsize
    Py_ssize_t nbytes


cdef int transfer(Operands *operands, Walk *walk, int dtype, int into,
                  str name) except -1:
    """Copy operand 0 to operand 1: in a pass, on threads, or here.

    The operands share no memory, or are the same elements; `can_transfer` is true.
    """
    cdef Py_ssize_t size = walk_size(walk)
    cdef Transfer how
    cdef Fill fill
    cdef Job job
    how.cast = NULL if dtype == into else ndx_cast_between(dtype, into)
    how.itemsize = itemsize_of[dtype]
    if size == 0:
        locate(operands)
        return recheck_all(operands)
    if size < LARGE:
        return compute_on(operands, walk, run_transfer, &how, False)
    begin_job(&job, operands, walk, run_transfer, &how)
    job.itemsizes[0] = itemsize_of[dtype]
    job.itemsizes[1] = itemsize_of[into]
    if how.cast == NULL and walk.ndim == 1 and walk.strides[0][0] == 0 \
            and walk.strides[1][0] == how.itemsize:
        fill = Fill(how.itemsize, size * how.itemsize)
        job.kernel = run_fill
        job.arg = &fill
    return run(&job, name)


# ---------------------------------------------------------------- fills

cdef void run_fill(void *arg, char **data, const Walk *walk) noexcept nogil:
    """Copy the one element of operand 0 to all of operand 1, which is contiguous."""
    cdef const Fill *fill = <const Fill *>arg
    cdef Py_ssize_t count = walk.shape[0] if walk.ndim else 1
    cdef char[16] value
    # A copy: the element may be one of those that are written.
    memcpy(value, data[0], fill.itemsize)
    ndx_fill_part(data[1], count * fill.itemsize, value, fill.itemsize, fill.nbytes)


cdef int fill_all(Operands *operands, BaseArray out) except -1:
    """Copy the one element of operand 0 to all of operand 1, `out`."""
    cdef Fill fill
    cdef Walk walk
    if out.size < LARGE and out.c_contiguous:
        fill.itemsize = itemsize_of[out.dtype]
        fill.nbytes = out.size * fill.itemsize
        walk.ndim = 1
        walk.nops = 2
        walk.shape[0] = out.size
        return compute_on(operands, &walk, run_fill, &fill, False)
    walk_fill(out, &walk)
    return transfer(operands, &walk, out.dtype, out.dtype, "fill")


# ---- Of arrays -----------------------------------------------------------------------

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    int PyArray_CopyInto(cnp.ndarray out, cnp.ndarray x) except -1
    object make_scalar_view "PyArray_SimpleNewFromData" (
        int ndim, const Py_ssize_t *shape, int typenum, void *data)


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
    require_writeable(out)
    if out.dtype != x.dtype:
        require_castable(x.dtype, out.dtype)
    return copy_elements(out, x, False)


cdef int copy_elements(BaseArray out, BaseArray x, bint is_new) except -1:
    """Copy `x` into `out`; `is_new`: no other code has a reference to `out` yet."""
    cdef Py_ssize_t nbytes = out.size * itemsize_of[out.dtype]
    cdef bint plain = out.dtype == x.dtype and out.c_contiguous and x.c_contiguous \
        and out.size == x.size and nbytes < LARGE
    cdef Operands operands
    cdef Transfer how
    cdef Walk walk
    cdef bint walks
    if out.block.device | x.block.device:
        engine_for("a copy", (out, x)).copy_into(out, x)
        return 0
    if not plain and not is_new and overlaps(out, x):
        # NumPy checks this, too, but not for two arrays of one axis: its
        # a[::2] = a[:5] reads elements that it has overwritten.
        x = copy(x)
    operands.count = 0
    put(&operands, x)
    put(&operands, out)
    if plain:
        begin_all(&operands)
        memmove(operands.data[1], operands.data[0], nbytes)
        return end_all(&operands)
    if is_new and x.ndim == 1 and out.dtype == x.dtype and nbytes < LARGE:
        begin_all(&operands)
        how.cast = NULL
        how.itemsize = itemsize_of[x.dtype]
        transfer_block(&how, operands.data[1], 0, out.strides[0], operands.data[0], 0,
                       x.strides[0], 1, x.size)
        return end_all(&operands)
    if x.size == 1 and out.dtype == x.dtype and x.ndim <= out.ndim:
        return fill_all(&operands, out)
    walks = walk_copy(out, x, &walk)
    if walks and can_transfer(x.dtype, out.dtype) and (
            is_new or has_distinct_elements(out)):
        # Where several values go to one place, NumPy's order decides which one stays.
        return transfer(&operands, &walk, x.dtype, out.dtype, "copy")
    hold(&operands)
    try:
        if not walks or out.size < LARGE \
                or not cast_walk(&operands, &walk, x.dtype, out.dtype):
            # NumPy's copy also raises the error for shapes that don't fit.
            copy_by_numpy(&operands, out, x)
    finally:
        let_go(&operands)
    return 0


cdef int copy_by_numpy(Operands *held, BaseArray out, BaseArray x) except -1:
    """Copy operand 0 to operand 1, in any layout and dtype."""
    cdef object token = None
    if promote_table[x.dtype][out.dtype] != out.dtype:
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
    store_constant(scalar, out.dtype, value)
    return fill_with(out, value)


cdef int report_overflow(object scalar, int dtype) except -1:
    """Report a Python scalar that a dtype can't hold, if that is wanted here."""
    cdef int wide = COMPLEX128 if kind_of[dtype] == KIND_COMPLEX else FLOAT64
    if kind_of[dtype] >= KIND_FLOAT and dtype != wide and reports():
        np.asarray(scalar, dtype=dtype_object(wide)).astype(dtype_object(dtype))
    return 0


cdef int fill_with(BaseArray out, char *value) except -1:
    """Write one element to every element of `out`."""
    cdef Operands operands
    require_writeable(out)
    if out.block.device:
        engine_of(out.block.device).fill(
            out, make_scalar_view(0, NULL, typenum_of[out.dtype], value).copy())
        return 0
    operands.count = 0
    put_constant(&operands, value)
    put(&operands, out)
    return fill_all(&operands, out)


cdef BaseArray copy(BaseArray x):
    return cast(x, x.dtype)


cdef BaseArray in_c_order(BaseArray x, int dtype):
    """Return a new C-contiguous array with the values of `x` in a dtype."""
    cdef BaseArray result = new_empty(dtype, x.ndim, x.shape)
    copy_into(result, x)
    return result


cdef BaseArray cast(BaseArray x, int dtype):
    """Return a new array with the values of `x` in another dtype."""
    cdef BaseArray result
    require_usable(x)
    require_castable(x.dtype, dtype)
    result = new_like(x, dtype)
    copy_elements(result, x, True)
    return result


cdef bint can_store(int dtype, int into) noexcept:
    """Whether values of `dtype` keep their kind when stored in an array of `into`."""
    cdef int kind = kind_of[dtype], target = kind_of[into]
    if kind == KIND_INT or kind == KIND_UINT:
        return target == KIND_INT or target == KIND_UINT or target >= KIND_FLOAT
    return kind <= target


# ---- Orders of elements in memory, by name -------------------------------------------

cdef int check_order(object order) except -1:
    if not isinstance(order, str) or order not in ("C", "F"):
        raise ValueError(
            f"order={order!r} is not an order of elements: valid are 'C' (the last "
            "axis fastest), 'F' (the first) and None (as they lie)")
    return 0


cdef bint lies_in(BaseArray x, object order):
    """Whether the elements lie in memory in an order: "C" or "F"; None: any."""
    return order is None or (x.c_contiguous if order == "C" else x.f_contiguous)


cdef BaseArray cast_ordered(BaseArray x, int dtype, object order):
    """Return a new array with the values of `x`, in an order."""
    cdef int axes[MAXDIMS]
    cdef int axis
    cdef BaseArray result
    for axis in range(x.ndim):
        axes[axis] = axis if order == "C" else x.ndim - 1 - axis
    result = new_array(x.block.device, dtype, x.ndim, x.shape, axes, False)
    require_castable(x.dtype, dtype)
    copy_elements(result, x, True)
    return result

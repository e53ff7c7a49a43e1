"""Copies, casts and fills, in any layout and dtype, on the CPU or a device."""

cimport numpy as cnp
from libc.string cimport memmove

from ndx._array.dispatch cimport device_engine
from ndx._array.pinning cimport (
    Operands, hold, let_go, locate, put, put_constant, recheck_all, view_of,
)
from ndx._array.storage cimport (
    BaseArray, new_empty, new_like, require_usable, require_writeable,
)
from ndx._compute.aliasing cimport has_distinct_elements, overlaps
from ndx._compute.numpy_private cimport reports, restore, silence
from ndx._compute.passes.copying cimport cast_walk
from ndx._compute.transfers cimport (
    Transfer, can_transfer, fill_all, transfer, transfer_block, walk_copy,
)
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, KIND_COMPLEX, KIND_FLOAT, KIND_INT,
    KIND_UINT, dtype_object, itemsize_of, kind_of, typenum_of,
)
from ndx._lib.layout cimport Walk

import numpy as np

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
        device_engine().copy_into(out, x)
        return 0
    if not plain and not is_new and overlaps(out, x):
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
    if is_new and x.ndim == 1 and out.dtype == x.dtype and nbytes < LARGE:
        locate(&operands)
        how.cast = NULL
        how.itemsize = itemsize_of[x.dtype]
        transfer_block(&how, operands.data[1], 0, out.strides[0], operands.data[0], 0,
                       x.strides[0], 1, x.size)
        return recheck_all(&operands)
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
    store_constant(scalar, out.dtype, value)
    return fill_with(out, value)


cdef int report_overflow(object scalar, int dtype) except -1:
    """Report a Python scalar that a dtype can't hold, if that is wanted here."""
    if (dtype == FLOAT32 or dtype == COMPLEX64) and reports():
        wide = dtype_object(FLOAT64 if dtype == FLOAT32 else COMPLEX128)
        np.asarray(scalar, dtype=wide).astype(dtype_object(dtype))
    return 0


cdef int fill_with(BaseArray out, char *value) except -1:
    """Write one element to every element of `out`."""
    cdef Operands operands
    require_writeable(out)
    if out.block.device:
        device_engine().fill(
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

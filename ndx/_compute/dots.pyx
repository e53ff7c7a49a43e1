"""NumPy's `dot`, `outer` and `norm` of arrays, in our memory."""

cimport numpy as cnp
from libc.string cimport memcpy

from ndx._array.pinning cimport Operands, hold, let_go, put, view_of
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport LARGE, cast
from ndx._compute.elementwise cimport binary, unary
from ndx._compute.loops cimport Ufunc, find_ufunc, loop_of
from ndx._compute.matmul cimport matmul, vecdot_walk
from ndx._lib.dtypes cimport (
    FLOAT64, KIND_FLOAT, itemsize_of, kind_of, promote_table,
)
from ndx._lib.layout cimport MAXDIMS

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyArray_MatrixProduct2(object a, object b, cnp.ndarray out)

cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SQRT = find_ufunc("sqrt")
cdef Ufunc VECDOT = find_ufunc("vecdot")


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
    if x.size == 1 and y.size == 1 and kind_of[dtype] <= KIND_FLOAT:
        # NumPy adds the product to nothing, so that a zero keeps its sign.
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

"""Searching functions of the standard."""

cimport numpy as cnp
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset

from ndx._api.utility cimport truth
from ndx._array.pinning cimport (
    Operands, compute_on, hold, let_go, put, put_constant, view_of,
)
from ndx._array.storage cimport BaseArray, is_array, new_array, new_empty, strided
from ndx._compute.advanced_indexing cimport count_into, places_of
from ndx._compute.argmax cimport find_large, find_small
from ndx._compute.copies cimport cast, fill, store_constant
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport binary, compute_loop, is_scalar
from ndx._compute.executor cimport run
from ndx._compute.loops cimport Loop, Ufunc, find_ufunc
from ndx._compute.numpy_calls cimport argument
from ndx._compute.reductions cimport combined, distinct, reduce_truth, repeats
from ndx._compute.sorting cimport places_in, search
from ndx._compute.tiles cimport Job, begin_job
from ndx._lib.dtypes cimport (
    FLOAT64, INT64, KIND_FLOAT, KIND_INT, KIND_UINT, UINT64, dtype_object, itemsize_of,
    kind_of, promote_table, scalar_dtype,
)
from ndx._lib.layout cimport (
    MAXDIMS, Strided, Walk, broadcast_into, broadcast_strides, normalize_axes,
    normalize_axis, order_axes, read_axes, walk_merge, walk_order,
)
from ndx._methods.values cimport is_integer

import numpy as np

from ndx._api.creation_from_data import asarray
from ndx._api.data_types import astype, int64
from ndx._api.manipulation import reshape, squeeze
from ndx._compute.numpy_calls import call, on_device
from ndx._lib.device import CPU

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]

cnp.import_array()

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc GREATER_EQUAL = find_ufunc("greater_equal")
cdef Ufunc LESS_EQUAL = find_ufunc("less_equal")

cdef extern from "numpy/arrayobject.h":
    int NPY_RAVEL_AXIS
    object PyArray_ArgMax(cnp.ndarray array, int axis, cnp.ndarray out)
    object PyArray_ArgMin(cnp.ndarray array, int axis, cnp.ndarray out)

cdef extern from "ndx/internal/choose.h" nogil:
    void ndx_choose(char **args, const Py_ssize_t *steps, Py_ssize_t n, size_t itemsize)


cdef object extreme(str name, object x, object axis, bint keepdims):
    """Return the indices of the largest ('argmax') or smallest elements."""
    cdef BaseArray array = argument(x, name), result, view
    cdef int which = NPY_RAVEL_AXIS
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Operands operands
    cdef int i, ndim = 0
    if axis is not None:
        which = normalize_axis(axis, array.ndim)
    if array.block.device:
        return on_device(name, array, axis=None if axis is None else which,
                         keepdims=bool(keepdims))
    if array.size and repeats(array, None if axis is None else which) > 1:
        # Searching the distinct elements is enough: the first of equal ones counts.
        others = distinct(array, None if axis is None else which)
        return first_of(array, extreme(name, others, axis, keepdims), axis)
    for i in range(array.ndim):
        if axis is not None and i != which:
            shape[ndim] = array.shape[i]
            ndim += 1
        elif keepdims:
            shape[ndim] = 1
            ndim += 1
    result = new_empty(INT64, ndim, shape)
    view = result
    if (axis is None or array.ndim == 1) and find_small(
            array, result, name == "argmax"):
        return result
    if keepdims:
        # PyArray_ArgMax and PyArray_ArgMin have no `keepdims`.
        view = reshape(result, ()) if axis is None else squeeze(result, which)
    if array.size >= LARGE and find_large(
            name, array, view, -1 if axis is None else which):
        return result
    operands.count = 0
    put(&operands, array)
    put(&operands, view)
    hold(&operands)
    try:
        if name == "argmax":
            PyArray_ArgMax(<cnp.ndarray>view_of(&operands, 0), which,
                           <cnp.ndarray>view_of(&operands, 1))
        else:
            PyArray_ArgMin(<cnp.ndarray>view_of(&operands, 0), which,
                           <cnp.ndarray>view_of(&operands, 1))
    finally:
        let_go(&operands)
    return result


cdef BaseArray first_of(BaseArray x, BaseArray found, object axis):
    """Return the index in an array of an element found among its distinct elements."""
    cdef int64_t index, place = 0
    cdef Py_ssize_t step = 1
    cdef int i
    if axis is not None:
        return found
    index = (<object>found).item()
    for i in range(x.ndim - 1, -1, -1):
        if x.strides[i] != 0:
            place += index % x.shape[i] * step
            index //= x.shape[i]
        step *= x.shape[i]
    fill(found, place)
    return found


def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Return the index of the first largest element; of the first NaN, if any.

    Parameters
    ----------
    x : NDArray
        With one element or more. Complex numbers are compared by their real parts,
        then by the imaginary ones.
    axis : int, optional
        Axis to search along, in ``[-x.ndim, x.ndim)``. Default: the flattened array.
    keepdims : bool
        Whether to keep the axis, with length 1.

    Returns
    -------
    NDArray of int64

    Raises
    ------
    ValueError
        If there is no element, or the axis is out of range.

    Notes
    -----
    Array API 2025.12, `argmax`.

    Examples
    --------
    >>> import ndx
    >>> ndx.argmax(ndx.asarray([[1, 5], [7, 4]]), axis=1)
    NDArray([1, 0])
    """
    return extreme("argmax", x, axis, keepdims)


def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> NDArray:
    """Return the index of the first smallest element; of the first NaN, if any.

    Parameters
    ----------
    x : NDArray
        With one element or more. Complex numbers are compared by their real parts,
        then by the imaginary ones.
    axis : int, optional
        Axis to search along, in ``[-x.ndim, x.ndim)``. Default: the flattened array.
    keepdims : bool
        Whether to keep the axis, with length 1.

    Returns
    -------
    NDArray of int64

    Raises
    ------
    ValueError
        If there is no element, or the axis is out of range.

    Notes
    -----
    Array API 2025.12, `argmin`.

    Examples
    --------
    >>> import ndx
    >>> ndx.argmin(ndx.asarray([[1, 5], [7, 4]]), axis=1)
    NDArray([0, 1])
    """
    return extreme("argmin", x, axis, keepdims)


def count_nonzero(x: Array, /, *, axis: Axes | None = None,
                  keepdims: bool = False) -> NDArray:
    """Return the number of elements along axes that are not zero.

    Parameters
    ----------
    x : NDArray
    axis : int or tuple of int, optional
        Axes to count over, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray of int64

    Raises
    ------
    ValueError
        If an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `count_nonzero`.

    Examples
    --------
    >>> import ndx
    >>> ndx.count_nonzero(ndx.asarray([[0, 5], [7, 4]]), axis=1)
    NDArray([1, 2])
    """
    cdef BaseArray array = argument(x, "count_nonzero"), count
    cdef Py_ssize_t times
    if array.block.device:
        return on_device("count_nonzero", array, keepdims=bool(keepdims),
                         axis=normalize_axes(axis, array.ndim))
    axis = read_axes(axis)
    if axis is None and array.size < LARGE:
        return count_all(array, keepdims)
    times = repeats(array, axis)
    if times > 1:
        count = count_nonzero(distinct(array, axis), axis=axis, keepdims=keepdims)
        return combined(ADD, count, times)
    if axis is None:
        return count_all(array, keepdims)
    return reduce_truth("count_nonzero", ADD, array, INT64, axis, keepdims)


cdef BaseArray count_all(BaseArray x, bint keepdims):
    """Return the number of all elements that are not zero."""
    cdef Py_ssize_t shape[MAXDIMS]
    cdef BaseArray result
    cdef int axis
    for axis in range(x.ndim):
        shape[axis] = 1
    result = new_empty(INT64, x.ndim if keepdims else 0, shape)
    count_into(result, x)
    return result


def nonzero(x: Array, /) -> tuple[NDArray, ...]:
    """Return the indices of the elements that are not zero.

    Parameters
    ----------
    x : NDArray
        With one axis or more.

    Returns
    -------
    tuple of NDArray of int64, each of shape (n,)
        For each axis, the n elements' indices along it, in C order.

    Raises
    ------
    ValueError
        If `x` has no axes.

    Notes
    -----
    Array API 2025.12, `nonzero`.

    Examples
    --------
    >>> import ndx
    >>> ndx.nonzero(ndx.asarray([0, 5, 0, 7]))
    (NDArray([1, 3]),)
    """
    cdef BaseArray array = argument(x, "nonzero")
    cdef Py_ssize_t[2] shape
    if array.ndim == 0:
        raise ValueError("nonzero needs an array of one axis or more, not a 0d one")
    if array.size >= LARGE and not array.block.device and repeats(array, None) > 1:
        # NumPy reads each element before it allocates, which for a broadcast view may
        # take forever. Allocating first fails if there are too many.
        shape[0] = int(count_nonzero(array))
        shape[1] = array.ndim
        found = new_empty(INT64, 2, shape)
        if shape[0] == 0:
            return tuple([(<object>found)[:, i] for i in range(array.ndim)])
        del found
    elif not array.block.device:
        places = places_of(array)
        if places is not None:
            return places
    return call("nonzero", array)


cdef tuple integer_key(BaseArray x, object scalar, str side):
    """Return a Python integer in the dtype of an array of integers, and the side.

    NumPy's int64 next to uint64 would be a float.
    """
    dtype = dtype_object(x.dtype)
    limits = np.iinfo(dtype)
    if scalar > limits.max:
        scalar, side = limits.max, "right"
    elif scalar < limits.min:
        scalar, side = limits.min, "left"
    return asarray(scalar, dtype=dtype, device=(<object>x).device), side


def searchsorted(x1: Array, x2: Operand, /, *, side: Literal["left", "right"] = "left",
                 sorter: Array | None = None) -> NDArray:
    """Return the indices at which elements can be inserted to keep an array sorted.

    Parameters
    ----------
    x1 : NDArray, shape (n,)
        In ascending order, or put into it by `sorter`.
    x2 : NDArray, int or float
        The elements to insert.
    side : {'left', 'right'}
        Whether to insert before or after equal elements.
    sorter : NDArray of integers, shape (n,), optional
        Indices that sort `x1`.

    Returns
    -------
    NDArray of int64
        Of the shape of `x2`; from 0 to n.

    Raises
    ------
    ValueError
        If `x1` does not have exactly one axis, or `side` is unknown.

    Notes
    -----
    Array API 2025.12, `searchsorted`.

    Examples
    --------
    >>> import ndx
    >>> ndx.searchsorted(ndx.asarray([1, 3, 5]), ndx.asarray([3, 6]))
    NDArray([1, 3])
    """
    cdef BaseArray array = argument(x1, "searchsorted")
    if side not in ("left", "right"):
        raise ValueError(f"side={side!r} is unknown; valid are 'left' and 'right'")
    if array.ndim != 1:
        raise ValueError(f"searchsorted needs an array of one axis, not {array.ndim}")
    if not is_scalar(x2):
        x2 = argument(x2, "searchsorted")
    elif kind_of[array.dtype] in (KIND_INT, KIND_UINT) \
            and scalar_dtype(array.dtype, x2) == array.dtype:
        x2, side = integer_key(array, x2, side)
    elif kind_of[array.dtype] >= KIND_FLOAT \
            and scalar_dtype(array.dtype, x2) == array.dtype:
        try:
            x2 = asarray(
                x2, dtype=dtype_object(array.dtype), device=(<object>array).device)
        except OverflowError:
            # An integer that is larger than all floats.
            x2 = float("inf") if x2 > 0 else float("-inf")
            side = "left" if x2 > 0 else "right"
            x2 = asarray(x2, device=(<object>array).device)
    if is_array(x2) and promote_table[array.dtype][(<BaseArray>x2).dtype] == FLOAT64 \
            and is_integer(array.dtype) and is_integer((<BaseArray>x2).dtype):
        return among_others(array, x2, side, sorter)
    if sorter is None and is_array(x2) \
            and not array.block.device | (<BaseArray>x2).block.device:
        found = search(array, x2, side == "right")
        if found is not None:
            return found
        if array.size < LARGE and (<BaseArray>x2).size < LARGE:
            return places_in(array, x2, side == "right")
    if sorter is not None:
        sorter = astype(argument(sorter, "searchsorted"), int64, copy=False)
    return call("searchsorted", array, x2, side=side, sorter=sorter)


cdef object among_others(BaseArray x1, BaseArray x2, object side, object sorter):
    """Return where signed integers belong among uint64, or uint64 among signed ones.

    No integer dtype holds both; as floats, some different integers are equal.
    """
    if x1.dtype == UINT64:
        fits, beyond = binary(GREATER_EQUAL, x2, 0, None), 0
    else:
        last = int(np.iinfo(dtype_object(x1.dtype)).max)
        fits, beyond = binary(LESS_EQUAL, x2, last, None), x1.size
    keys = astype(where(fits, x2, 0), dtype_object(x1.dtype))
    return where(fits, searchsorted(x1, keys, side=side, sorter=sorter), beyond)


# ---------------------------------------------------------------- where

cdef void run_select(char **args, const Py_ssize_t *counts, const Py_ssize_t *steps,
                     void *data) noexcept nogil:
    """Inner loop of `where`, with the signature of NumPy's; `data` is the item size."""
    ndx_choose(args, steps, counts[0], <size_t>data)


def where(condition: Array, x1: Operand, x2: Operand, /) -> NDArray:
    """Return elements of one array where a condition is true, else of another.

    Parameters
    ----------
    condition : NDArray
        Of dtype bool. In other dtypes an element is true if it is not zero.
    x1, x2 : NDArray or Python scalar
        The elements where the condition is true, and false. All three broadcast.

    Returns
    -------
    NDArray, the broadcast shape
        A new array of the promoted dtype of `x1` and `x2`; for two scalars, of the
        default dtype of their kinds.

    Raises
    ------
    TypeError
        If an argument is neither an array nor a scalar.
    ValueError
        If the shapes can't be broadcast together.

    Notes
    -----
    Array API 2025.12, `where`.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.asarray([-1.0, 2.0])
    >>> ndx.where(x > 0, x, 0.0)
    NDArray([0., 2.])
    """
    cdef BaseArray chosen = truth(condition, "where")
    cdef BaseArray a = None if is_scalar(x1) else argument(x1, "where")
    cdef BaseArray b = None if is_scalar(x2) else argument(x2, "where")
    cdef char[16] first
    cdef char[16] second
    cdef int dtype
    if a is None and b is None:
        a = asarray(x1, device=CPU)
    if b is None:
        dtype = scalar_dtype(a.dtype, x2)
    elif a is None:
        dtype = scalar_dtype(b.dtype, x1)
    else:
        dtype = promote_table[a.dtype][b.dtype]
    if a is None:
        store_constant(x1, dtype, first)
    elif a.dtype != dtype:
        a = cast(a, dtype)
    if b is None:
        store_constant(x2, dtype, second)
    elif b.dtype != dtype:
        b = cast(b, dtype)
    if chosen.block.device or (a is not None and a.block.device) \
            or (b is not None and b.block.device):
        kind = dtype_object(dtype).type
        return on_device("where", chosen, kind(x1) if is_scalar(x1) else a,
                         kind(x2) if b is None else b)
    return selected(chosen, a, b, first, second, dtype)


cdef BaseArray selected(BaseArray chosen, BaseArray a, BaseArray b, char *first,
                        char *second, int dtype):
    cdef Strided layout
    cdef Operands operands
    cdef Job job
    cdef int order[MAXDIMS]
    cdef Loop loop
    cdef Walk walk
    cdef BaseArray result
    cdef int op
    walk.ndim = 0
    for operand in (chosen, a, b):
        if operand is None:
            continue
        walk.ndim = broadcast_into(walk.ndim, walk.shape, (<BaseArray>operand).ndim,
                                   (<BaseArray>operand).shape)
        if walk.ndim < 0:
            shapes = [str(x.shape) for x in (<object>chosen, a, b) if x is not None]
            raise ValueError(
                f"where: shapes {', '.join(shapes)} can't be broadcast together; "
                "counted from the last, axes must be equal or 1")
    operands.count = 0
    for op, operand in enumerate((chosen, a, b)):
        if operand is None:
            put_constant(&operands, first if op == 1 else second)
            memset(walk.strides[op], 0, walk.ndim * sizeof(Py_ssize_t))
            continue
        strided(<BaseArray>operand, &layout)
        broadcast_strides(&layout, walk.ndim, walk.shape, walk.strides[op])
        put(&operands, <BaseArray>operand)
    order_axes(walk.ndim, walk.shape, 3, walk.strides, True, order)
    result = new_array(0, dtype, walk.ndim, walk.shape, order, False)
    if result.size == 0:
        return result
    put(&operands, result)
    memcpy(walk.strides[3], result.strides, walk.ndim * sizeof(Py_ssize_t))
    walk.nops = 4
    walk_order(&walk)
    walk_merge(&walk)
    loop.function = run_select
    loop.data = <void *>itemsize_of[dtype]
    if result.size >= LARGE:
        begin_job(&job, &operands, &walk, compute_loop, &loop)
        job.itemsizes[0] = itemsize_of[chosen.dtype]
        job.itemsizes[1] = job.itemsizes[2] = job.itemsizes[3] = itemsize_of[dtype]
        run(&job, "where")
    else:
        compute_on(&operands, &walk, compute_loop, &loop, False)
    return result

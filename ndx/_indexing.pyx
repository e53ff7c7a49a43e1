"""Indexing: views by integers, slices, ellipsis and newaxis; the rest by NumPy."""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

import numpy as np

from ndx._array cimport (
    BaseArray, check, is_array, new_view, numpy_view, pin, require_writeable,
    set_layout, transient_view, unpin,
)
from ndx._dtypes cimport (
    BOOL, INT64, KIND_INT, KIND_UINT, dtype_object, itemsize_of, kind_of, scalar_dtype,
)
from ndx._layout cimport MAXDIMS, shape_tuple
from ndx._numpy_memory cimport call_numpy, own_result
from ndx._operations cimport (
    as_operand, can_store, cast, copy_into, fill, is_scalar,
)

cdef extern from "Python.h":
    bint PySlice_Check(object o) noexcept
    bint PyIndex_Check(object o) noexcept
    bint PyLong_CheckExact(object o) noexcept
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject *exc) except? -1
    PyObject *PyExc_IndexError

cdef object getitem = np.ndarray.__getitem__
cdef object setitem = np.ndarray.__setitem__


cdef inline bint is_integer(object item) noexcept:
    """Whether an index is one integer: not a bool, and not an array of integers."""
    return PyLong_CheckExact(item) or (
        PyIndex_Check(item) and not isinstance(item, (bool, np.bool, cnp.ndarray))
        and not is_array(item))


cdef BaseArray basic_view(BaseArray x, object key):
    """Return the view that a basic key selects; None if the key is another."""
    cdef tuple items = key if type(key) is tuple else (key,)
    cdef BaseArray view
    cdef Py_ssize_t start = 0, stop = 0, step = 0, length, item_index, size
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    cdef Py_ssize_t offset = 0
    cdef int used = 0, added = 0, axis = 0, ndim = 0, k
    cdef bint ellipsis = False
    for item in items:
        if PySlice_Check(item) or is_integer(item):
            used += 1
        elif item is None:
            added += 1
        elif item is Ellipsis:
            if ellipsis:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = True
        else:
            return None
    if used > x.ndim:
        raise IndexError(
            f"too many indices: {used} for an array of shape "
            f"{shape_tuple(x.ndim, x.shape)}, which has {x.ndim}")
    if x.ndim + added > MAXDIMS:
        raise IndexError(f"the result would have more than {MAXDIMS} axes")
    for item in items:
        if PySlice_Check(item):
            PySlice_Unpack(item, &start, &stop, &step)
            length = PySlice_AdjustIndices(x.shape[axis], &start, &stop, step)
            if length > 0:
                offset += start * x.strides[axis]
            shape[ndim] = length
            strides[ndim] = x.strides[axis] * step
            ndim += 1
            axis += 1
        elif item is None:
            shape[ndim] = 1
            strides[ndim] = 0
            ndim += 1
        elif item is Ellipsis:
            for k in range(x.ndim - used):
                shape[ndim] = x.shape[axis]
                strides[ndim] = x.strides[axis]
                ndim += 1
                axis += 1
        else:
            item_index = PyNumber_AsSsize_t(item, PyExc_IndexError)
            size = x.shape[axis]
            if item_index < -size or item_index >= size:
                raise IndexError(
                    f"index {item_index} is out of bounds for axis {axis} with size "
                    f"{size} of an array of shape {shape_tuple(x.ndim, x.shape)}")
            offset += (item_index + size if item_index < 0 else item_index) \
                * x.strides[axis]
            axis += 1
    view = new_view(x, ndim + x.ndim - axis)
    for k in range(ndim):
        view.shape[k] = shape[k]
        view.strides[k] = strides[k]
    while axis < x.ndim:
        view.shape[ndim] = x.shape[axis]
        view.strides[ndim] = x.strides[axis]
        ndim += 1
        axis += 1
    view.offset += offset
    set_layout(view)
    return view


cdef object numpy_key(BaseArray x, object key):
    """Return an advanced key as NumPy takes it, or raise IndexError."""
    items = []
    for item in key if type(key) is tuple else (key,):
        if item is None or item is Ellipsis or PySlice_Check(item) or is_integer(item):
            items.append(item)
            continue
        if is_array(item):
            item = numpy_view(<BaseArray>item)
        elif isinstance(item, (bool, list, tuple, np.generic)):
            empty = isinstance(item, (list, tuple)) and not len(item)
            item = np.asarray(item, dtype=np.int64 if empty else None)
        if not isinstance(item, cnp.ndarray) or item.dtype.kind not in "biu":
            found = item.dtype if isinstance(item, cnp.ndarray) \
                else type(item).__name__
            raise IndexError(
                f"an array of shape {shape_tuple(x.ndim, x.shape)} can't be indexed by "
                f"{found}; valid are integers, slices, '...', None, and arrays of "
                "integers or booleans")
        items.append(item)
    return tuple(items)


cdef object get_item(BaseArray x, object key):
    """Return ``x[key]``: a view for a basic key, else a new array."""
    cdef BaseArray view = basic_view(x, key)
    if view is not None:
        return view
    return own_result(np.asarray(
        call_numpy(getitem, (numpy_view(x), numpy_key(x, key)), {})))


cdef int set_item(BaseArray x, object key, object value) except -1:
    """Write ``x[key] = value``; the value's kind must fit the array's dtype."""
    cdef BaseArray target, source = None
    check(x)
    require_writeable(x)
    if is_scalar(value):
        if not can_store(scalar_dtype(x.dtype, value), x.dtype):
            raise TypeError(
                f"a Python {type(value).__name__} can't be stored in an array of dtype "
                f"{dtype_object(x.dtype)}; use ndx.astype first")
    else:
        source = as_operand(value)
        if source is None:
            # Nested lists and buffers, as ndx.asarray would take them.
            source = as_operand(np.asarray(value))
        check(source)
        if not can_store(source.dtype, x.dtype):
            raise TypeError(
                f"values of dtype {dtype_object(source.dtype)} can't be stored in an "
                f"array of dtype {dtype_object(x.dtype)}; use ndx.astype first")
    target = basic_view(x, key)
    if target is not None:
        if source is None:
            fill(target, value)
        else:
            copy_broadcast(target, source)
        return 0
    if source is None:
        setitem_value = np.empty((), dtype_object(x.dtype))
        fill(as_operand(setitem_value), value)
    else:
        setitem_value = numpy_view(source)
    call_numpy(setitem, (numpy_view(x), numpy_key(x, key), setitem_value), {})
    return 0


cdef int copy_broadcast(BaseArray target, BaseArray source) except -1:
    """Copy with the shapes checked first, so that the message names both."""
    cdef int axis, shift = target.ndim - source.ndim
    cdef Py_ssize_t length
    for axis in range(source.ndim):
        length = source.shape[axis]
        # Leading axes of length 1 that the target lacks are dropped.
        if length != 1 and (axis + shift < 0 or length != target.shape[axis + shift]):
            raise ValueError(
                f"values of shape {shape_tuple(source.ndim, source.shape)} can't be "
                f"broadcast to the selection's shape "
                f"{shape_tuple(target.ndim, target.shape)}")
    copy_into(target, source)
    return 0

"""Indexing: elements and basic views; masks and index arrays where they are simple.

NumPy or the device does all other advanced indexing.
"""

cimport numpy as cnp
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.string cimport memcpy

from collections.abc import Sequence

import numpy as np

from ndx._array.dispatch cimport answer, engine_for
from ndx._array.pinning cimport begin_use, end_use
from ndx._array.storage cimport (
    BaseArray, data_of, holds_number, is_array, new_number, new_view, numpy_view,
    require_usable, require_writeable, same_view, set_layout,
)
from ndx._compute.copies cimport can_store, cast, copy, fill_with
from ndx._compute.elementwise cimport is_scalar
from ndx._compute.numpy_results cimport call_numpy, own_result
from ndx._lib.dtypes cimport KIND_INT, KIND_UINT, is_numpy_bool, itemsize_of, kind_of
from ndx._lib.integers cimport int_value
from ndx._lib.layout cimport MAXDIMS, shape_tuple, stepped
from ndx._methods.selection cimport (
    ENDLESS, basic_items, index_array, select, select_first, write_first,
    write_selected,
)
from ndx._methods.values cimport (
    copy_broadcast, numpy_array, numpy_source, source_for, store_value,
)

cdef extern from "Python.h":
    bint PySlice_Check(object o) noexcept
    bint PyIndex_Check(object o) noexcept
    bint PyLong_CheckExact(object o) noexcept
    bint PyTuple_Check(object o) noexcept
    bint PyTuple_CheckExact(object o) noexcept
    ctypedef struct PySliceObject:
        PyObject *start
        PyObject *stop
        PyObject *step
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject *exc) except? -1
    object PyNumber_Index(object o)
    PyObject *PyExc_IndexError


def set_copying(view, key, value):
    """Set elements of an array of NumPy by a key, of which the array may be a part."""
    view[tuple([
        item.copy() if isinstance(item, cnp.ndarray) and np.may_share_memory(item, view)
        else item for item in key])] = value


cdef object getitem = np.ndarray.__getitem__
# Before 2.3 NumPy reads such a key while it writes, and then writes out of bounds.
cdef object setitem = set_copying if np.lib.NumpyVersion(np.__version__) < "2.3.0" \
    else np.ndarray.__setitem__


cdef inline bint is_integer_element(BaseArray x) noexcept:
    """Whether an array has no axes, and an integer, as NumPy's scalars: `x[0]`."""
    return x.ndim == 0 and not x.block.device \
        and kind_of[x.dtype] in (KIND_INT, KIND_UINT)


cdef inline bint is_integer(object item) noexcept:
    """Whether an index is one integer: not a bool, and no array but an element's."""
    if PyLong_CheckExact(item):
        return True
    if is_array(item):
        return is_integer_element(<BaseArray>item)
    return PyIndex_Check(item) and not isinstance(item, bool) \
        and not is_numpy_bool(item) and not isinstance(item, cnp.ndarray)


cdef inline Py_ssize_t checked_index(BaseArray x, object item, int axis) except -1:
    """Return an integer index counted from the front, or raise IndexError."""
    cdef Py_ssize_t index = 0, size = x.shape[axis]
    cdef int overflow = 1
    if PyLong_CheckExact(item):
        index = int_value(item, &overflow)
    if overflow:
        index = PyNumber_AsSsize_t(item, PyExc_IndexError)
    if index < -size or index >= size:
        raise IndexError(
            f"index {index} is out of bounds for axis {axis} with size {size} of an "
            f"array of shape {shape_tuple(x.ndim, x.shape)}")
    return index + size if index < 0 else index


cdef inline int unpack_slice(object item, Py_ssize_t *start, Py_ssize_t *stop,
                             Py_ssize_t *step) except -1:
    """Like PySlice_Unpack, but faster for the common slice of two ints."""
    cdef PySliceObject *bounds = <PySliceObject *>item
    cdef int overflow = 0, overflow_too = 0
    if <object>bounds.step is None and PyLong_CheckExact(<object>bounds.start) \
            and PyLong_CheckExact(<object>bounds.stop):
        start[0] = int_value(<object>bounds.start, &overflow)
        stop[0] = int_value(<object>bounds.stop, &overflow_too)
        step[0] = 1
        if not overflow and not overflow_too:
            return 0
    return PySlice_Unpack(item, start, stop, step)


cdef BaseArray slice_view(BaseArray x, object item):
    """Return the view that one slice along the first axis selects."""
    cdef Py_ssize_t start = 0, stop = 0, step = 0, length
    cdef BaseArray view
    cdef int axis
    unpack_slice(item, &start, &stop, &step)
    length = PySlice_AdjustIndices(x.shape[0], &start, &stop, step)
    view = new_view(x, x.ndim)
    for axis in range(1, x.ndim):
        view.shape[axis] = x.shape[axis]
        view.strides[axis] = x.strides[axis]
    view.shape[0] = length
    view.strides[0] = stepped(x.strides[0], step)
    if length > 0:
        view.offset += start * x.strides[0]
    set_layout(view)
    return view


cdef BaseArray row_view(BaseArray x, Py_ssize_t index):
    """Return the view at a position along the first axis."""
    cdef BaseArray view = new_view(x, x.ndim - 1)
    cdef int axis
    for axis in range(1, x.ndim):
        view.shape[axis - 1] = x.shape[axis]
        view.strides[axis - 1] = x.strides[axis]
    view.offset += index * x.strides[0]
    set_layout(view)
    return view


cdef BaseArray basic_view(BaseArray x, object key):
    """Return the view that a basic key selects; None for an advanced key."""
    if x.ndim:
        if PySlice_Check(key):
            return slice_view(x, key)
        if PyLong_CheckExact(key):
            return row_view(x, checked_index(x, key, 0))
    return view_of_items(x, key if type(key) is tuple else (key,))


cdef BaseArray view_of_items(BaseArray x, tuple items):
    cdef BaseArray view
    cdef Py_ssize_t start = 0, stop = 0, step = 0, length
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t strides[MAXDIMS]
    cdef Py_ssize_t offset = 0
    cdef int used = 0, axis = 0, ndim = 0, k
    cdef Py_ssize_t left = x.ndim
    cdef bint ellipsis = False
    for item in items:
        if PySlice_Check(item):
            used += 1
        elif is_integer(item):
            used += 1
            left -= 1
        elif item is None:
            left += 1
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
    if left > MAXDIMS:
        # AxisError is both ValueError, as in functions, and IndexError, as in indexing.
        raise np.exceptions.AxisError(
            f"the result would have {left} axes; an array has at most {MAXDIMS}")
    for item in items:
        if PySlice_Check(item):
            unpack_slice(item, &start, &stop, &step)
            length = PySlice_AdjustIndices(x.shape[axis], &start, &stop, step)
            if length > 0:
                offset += start * x.strides[axis]
            shape[ndim] = length
            strides[ndim] = stepped(x.strides[axis], step)
            ndim += 1
            axis += 1
        elif item is None:
            shape[ndim] = 1
            strides[ndim] = 0
            ndim += 1
        elif item is Ellipsis:
            for _ in range(x.ndim - used):
                shape[ndim] = x.shape[axis]
                strides[ndim] = x.strides[axis]
                ndim += 1
                axis += 1
        else:
            offset += checked_index(x, item, axis) * x.strides[axis]
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


cdef bint find_element(BaseArray x, object key, Py_ssize_t *offset) except -1:
    """Set the offset of the element that a key of integers for all axes selects.

    Return False for any other key.
    """
    cdef tuple items
    cdef int axis
    offset[0] = 0
    if type(key) is not tuple:
        if x.ndim != 1 or not is_integer(key):
            return False
        offset[0] = checked_index(x, key, 0) * x.strides[0]
        return True
    items = key
    if len(items) != x.ndim:
        return False
    for item in items:
        if not is_integer(item):
            return False
    for axis in range(x.ndim):
        offset[0] += checked_index(x, items[axis], axis) * x.strides[axis]
    return True


cdef BaseArray element(BaseArray x, Py_ssize_t offset):
    """Return the number at an offset; on a device, an array without axes."""
    cdef BaseArray result
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype]
    if x.block.device:
        result = new_view(x, 0)
        result.offset += offset
        set_layout(result)
        return copy(result)
    result = new_number(x.dtype)
    # Checked only after the allocation, which may run Python, which may end the scope.
    begin_use(x)
    if itemsize == 8:
        # A memcpy of constant size is one instruction.
        memcpy(result.dims, data_of(x) + offset, 8)
    else:
        memcpy(result.dims, data_of(x) + offset, itemsize)
    end_use(x)
    return result


cdef BaseArray item_at(BaseArray x, Py_ssize_t index):
    """Return ``x[index]`` for an index that is in range."""
    if x.ndim > 1:
        return row_view(x, index)
    return element(x, index * x.strides[0])


cdef bint find_flat(BaseArray x, object key, Py_ssize_t *offset) except -1:
    """Set the offset of the element with an index in C order; False: it is no int."""
    cdef Py_ssize_t index
    cdef int axis
    if not is_integer(key):
        return False
    index = PyNumber_AsSsize_t(key, PyExc_IndexError)
    if not -x.size <= index < x.size:
        raise IndexError(
            f"index {index} is out of bounds for the {x.size} elements of an array of "
            f"shape {shape_tuple(x.ndim, x.shape)}")
    if index < 0:
        index += x.size
    offset[0] = 0
    for axis in range(x.ndim - 1, -1, -1):
        offset[0] += index % x.shape[axis] * x.strides[axis]
        index //= x.shape[axis]
    return True


cdef BaseArray flat_element(BaseArray x, object key):
    """Return a new array of the element with that index in C order.

    Return None if the key is not an integer.
    """
    cdef Py_ssize_t offset = 0
    return element(x, offset) if find_flat(x, key, &offset) else None


cdef class ItemIterator:
    """The items along the first axis of an array, which is checked before each."""

    cdef BaseArray array             # None at the end
    cdef Py_ssize_t index            # of the next item

    def __iter__(self):
        return self

    def __next__(self):
        cdef BaseArray x = self.array
        cdef Py_ssize_t index = self.index
        if x is None or index >= x.shape[0]:
            self.array = None
            raise StopIteration
        require_usable(x)
        self.index = index + 1
        return item_at(x, index)


cdef object items_of(BaseArray x):
    """Return an iterator over the items along the first axis."""
    cdef ItemIterator items = ItemIterator.__new__(ItemIterator)
    items.array = x
    return items


cdef inline bint is_other_tuple(object key) noexcept:
    """Whether a key is of a subclass of tuple, such as a named tuple."""
    return PyTuple_Check(key) and not PyTuple_CheckExact(key)


cdef bint is_array_like(object item) except -1:
    """Whether NumPy would make an array of an item of a key, which is no array yet."""
    if isinstance(item, (str, bytes)) or isinstance(item, cnp.ndarray):
        return False
    return isinstance(item, (bool, list, tuple)) or isinstance(item, Sequence) \
        or hasattr(item, "__array__")


cdef object numpy_key(BaseArray x, object key):
    """Return an advanced key in the form NumPy accepts, or raise IndexError."""
    items = []
    for item in key if type(key) is tuple else (key,):
        if item is None or item is Ellipsis or PySlice_Check(item):
            items.append(item)
            continue
        if is_integer(item):
            # NumPy would swallow an error raised by `__index__`.
            items.append(PyNumber_AsSsize_t(item, PyExc_IndexError))
            continue
        if is_array(item):
            item = numpy_view(<BaseArray>item)
        elif is_array_like(item):
            item = numpy_array(item)
            if not item.size:
                item = item.astype(np.int64)
        if not isinstance(item, cnp.ndarray) or item.dtype.kind not in "biu":
            found = item.dtype if isinstance(item, cnp.ndarray) \
                else type(item).__name__
            raise IndexError(
                f"an array of shape {shape_tuple(x.ndim, x.shape)} can't be indexed by "
                f"{found}; valid are integers, slices, '...', None, and arrays of "
                "integers or booleans")
        if item.size >= ENDLESS and 0 in item.strides and item.dtype.kind == "b":
            raise ValueError(
                f"a mask of shape {item.shape} that is a broadcast view has too many "
                "elements to be gone through; index with one that is as large as its "
                "distinct elements")
        items.append(item)
    return tuple(items)


cdef BaseArray indexed_view(BaseArray x, object key, list indices, int *axis):
    """Return the view that the slices and ints of a key select.

    The key's arrays, which are appended to `indices`, select along axes of the view
    from `axis` on. Return None if the key is not of this kind.
    """
    cdef BaseArray view
    if type(key) is not tuple:
        return None
    items = basic_items(key, indices, axis)
    if items is None:
        return None
    if len(items) == len(indices):
        return x
    try:
        view = view_of_items(x, items)
    except IndexError:
        # NumPy's error names the axis of the whole key.
        return None
    if axis[0] < 0:
        axis[0] += view.ndim
    return view


cdef inline bint is_list(object item) noexcept:
    return type(item) is list or type(item) is range


cdef bint has_list(object key):
    """Whether a key is a list or has one, which NumPy makes an array."""
    if type(key) is not tuple:
        return is_list(key)
    for item in key:
        if is_list(item):
            return True
    return False


cdef BaseArray selected(BaseArray x, object key):
    """Return what a mask or index arrays select; None for other keys."""
    cdef BaseArray index = index_array(key), view
    cdef list indices
    cdef int axis = 0
    if index is not None:
        return select_first(x, index)
    indices = []
    view = indexed_view(x, key, indices, &axis)
    return None if view is None else select(view, indices, axis)


cdef object get_item(BaseArray x, object key):
    """Return ``x[key]``: a view if the key is basic and leaves axes, else a copy."""
    if x.ndim and PySlice_Check(key):
        return slice_view(x, key)
    if x.ndim == 1 and PyLong_CheckExact(key):
        return element(x, checked_index(x, key, 0) * x.strides[0])
    return get_other_item(x, key)


cdef object get_other_item(BaseArray x, object key):
    """Return ``x[key]`` for any key."""
    cdef BaseArray view
    cdef Py_ssize_t offset = 0
    if is_array(key) and is_integer_element(<BaseArray>key):
        key = PyNumber_Index(key)
    if not PySlice_Check(key):
        if is_array(key) and not x.block.device:
            view = selected(x, key)
            if view is not None:
                return view
        elif find_element(x, key, &offset):
            if x.ndim or holds_number(x):
                return element(x, offset)
            # An array stays one, also for those who write `x[()]` for any array.
            return same_view(element(x, offset))
    view = basic_view(x, key)
    if view is not None:
        return view
    if is_other_tuple(key):
        return get_item(x, tuple(key))
    if x.block.device:
        engine = engine_for("x[key]", (x, key))
        return answer(engine, "x[key]", engine.get_item(x, key))
    view = selected(x, key)
    if view is not None:
        return view
    listed = has_list(key)
    key = numpy_key(x, key)
    if listed:
        view = selected(x, key)
        if view is not None:
            return view
    return own_result(np.asarray(
        call_numpy(getitem, (numpy_view(x), key), {})))


cdef bint is_same_view(BaseArray x, BaseArray y) noexcept:
    """Whether two arrays over one block have the same elements; False if x is None."""
    cdef int axis
    if x is None or x.offset != y.offset or x.ndim != y.ndim or x.dtype != y.dtype:
        return False
    for axis in range(x.ndim):
        if x.shape[axis] != y.shape[axis] or x.strides[axis] != y.strides[axis]:
            return False
    return True


cdef int read_element(BaseArray x, char *value) except -1:
    """Copy the one element of an array on the host."""
    begin_use(x)
    memcpy(value, data_of(x), itemsize_of[x.dtype])
    return end_use(x)


cdef int write_element(BaseArray x, Py_ssize_t offset, const char *value) except -1:
    """Write an element on the host at an offset."""
    cdef Py_ssize_t itemsize = itemsize_of[x.dtype]
    # Checked only now: reading the key may have run Python, which may end the scope.
    begin_use(x)
    if itemsize == 8:
        memcpy(data_of(x) + offset, value, 8)
    else:
        memcpy(data_of(x) + offset, value, itemsize)
    end_use(x)
    return 0


cdef int set_flat(BaseArray x, object key, object value) except -1:
    """Write ``x.flat[key] = value``, of an array of the CPU."""
    cdef char[16] stored
    cdef Py_ssize_t offset = 0
    cdef BaseArray source = source_for(x, value, stored)
    if source is None or source.ndim == 0 and source.dtype == x.dtype \
            and not source.block.device:
        if source is not None:
            read_element(source, stored)
        if find_flat(x, key, &offset):
            return write_element(x, offset, stored)
    if is_array(key):
        key = np.asarray(key)
    call_numpy(set_numpys_flat, (numpy_view(x), key, numpy_source(source, x, stored)),
               {})
    return 0


def set_numpys_flat(view, key, value):
    """Set elements of an array of NumPy by their index in C order."""
    view.flat[key] = value


cdef int set_on_device(BaseArray x, object key, object value) except -1:
    """Like `set_item`, if one of the arrays is on a device."""
    if is_array(value) and (<BaseArray>value).block == x.block and \
            is_same_view(basic_view(x, key), value):
        # ``x[key] += y`` ends with this assignment; the values are in place.
        return 0
    engine_for("x[key] = value", (x, key, value)).set_item(x, key, value)
    return 0


cdef int set_item(BaseArray x, object key, object value) except -1:
    """Write ``x[key] = value``; `_methods.values` says what can be stored."""
    cdef BaseArray target, source = None
    cdef char[16] stored
    cdef Py_ssize_t offset = 0
    cdef bint plain = PyLong_CheckExact(key)
    require_usable(x)
    if x.readonly:
        require_writeable(x)
    if not plain:
        if is_other_tuple(key):
            key = tuple(key)
        elif is_array(key) and is_integer_element(<BaseArray>key):
            key = PyNumber_Index(key)
        plain = not PySlice_Check(key) and not is_array(key)
    if is_array(value) and (<BaseArray>value).dtype == x.dtype:
        source = value
        require_usable(source)
    elif is_scalar(value):
        store_value(value, x.dtype, stored)
    else:
        source = source_for(x, value, stored)
    if source is None:
        if plain and not x.block.device and find_element(x, key, &offset):
            return write_element(x, offset, stored)
    elif source.ndim == 0 and plain and source.dtype == x.dtype \
            and not source.block.device | x.block.device:
        read_element(source, stored)
        if find_element(x, key, &offset):
            return write_element(x, offset, stored)
    elif source.block.device and not can_store(source.dtype, x.dtype):
        source = cast(source, x.dtype)
    if x.block.device or (source is not None and source.block.device):
        return set_on_device(x, key, numpy_source(None, x, stored).item()
                             if source is None else source)
    if key is Ellipsis:
        target = x
    else:
        target = None if is_array(key) else basic_view(x, key)
    if target is not None:
        if source is None:
            fill_with(target, stored)
        else:
            copy_broadcast(target, source)
        return 0
    if write_indexed(x, key, source, stored):
        return 0
    listed = has_list(key)
    key = numpy_key(x, key)
    if listed and write_indexed(x, key, source, stored):
        return 0
    call_numpy(setitem, (numpy_view(x), key, numpy_source(source, x, stored)), {})
    return 0


cdef bint write_indexed(BaseArray x, object key, BaseArray source,
                        char *value) except -1:
    """Write to what a mask or index arrays select; return False for other keys.

    If `source` is None, write the element at `value`.
    """
    cdef BaseArray index = index_array(key), view
    cdef list indices
    cdef int axis = 0
    if index is not None:
        return write_first(x, index, source, value)
    indices = []
    view = indexed_view(x, key, indices, &axis)
    return view is not None and write_selected(view, indices, axis, source, value)

"""NumPy's functions that select, assign and count by masks and indices."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

import numpy as np

from ndx._array.storage cimport (
    BaseArray, data_of, new_array, require_intact_file, require_live,
    require_writeable,
)
from ndx._compute.advanced_indexing cimport count_true
from ndx._compute.aliasing cimport touches
from ndx._compute.copies cimport LARGE
from ndx._compute.manipulation cimport same_lengths
from ndx._lib.dtypes cimport BOOL, FLOAT64, INT64
from ndx._methods.indexing cimport set_item
from ndx._methods.numpy_function_table cimport Row, add_function
from ndx._methods.numpy_layout cimport diagonal_view, flat_view, slab
from ndx._methods.values cimport fits_weakly
from ndx._numpy.arguments cimport any_array_in, array_in, read_int

from ndx._api import searching


cdef object where(Row row, PyObject **given):
    """condition, x, y"""
    cdef BaseArray condition = array_in(given[0]), x, y
    if condition is None:
        return NotImplemented
    if given[1] == NULL and given[2] == NULL:
        return (<object>condition).nonzero()
    if given[1] == NULL or given[2] == NULL:
        return NotImplemented
    x, y = any_array_in(given[1]), any_array_in(given[2])
    if x is None and (y is None or not fits_weakly(<object>given[1], y.dtype)) \
            or y is None and (x is None or not fits_weakly(<object>given[2], x.dtype)):
        return NotImplemented
    if condition.dtype != BOOL:
        return NotImplemented
    return searching.where(condition, <object>given[1], <object>given[2])


cdef bint is_mask_of(BaseArray mask, BaseArray x) noexcept:
    """Whether an array is one of bools, of the shape of another."""
    return mask is not None and x is not None and mask.dtype == BOOL \
        and mask.ndim == x.ndim and same_lengths(mask, x, -1)


cdef object extract(Row row, PyObject **given):
    """`extract`, `compress`: condition, arr; `row.data`: whether with one axis."""
    cdef BaseArray mask = array_in(given[0]), x = array_in(given[1])
    if not is_mask_of(mask, x) or row.data and mask.ndim != 1:
        return NotImplemented
    return (<object>x)[mask]


cdef object copyto(Row row, PyObject **given):
    """dst, src"""
    cdef BaseArray x = array_in(given[0]), source = array_in(given[1])
    if x is None or given[1] == NULL:
        return NotImplemented
    if source is None and not fits_weakly(<object>given[1], x.dtype) \
            or source is not None and source.dtype != x.dtype:
        return NotImplemented
    require_writeable(x)
    set_item(x, ..., <object>given[1])
    return None


cdef object putmask(Row row, PyObject **given):
    """a, mask, values"""
    cdef BaseArray x = array_in(given[0]), mask = array_in(given[1])
    cdef BaseArray values = array_in(given[2])
    if not is_mask_of(mask, x) or given[2] == NULL:
        return NotImplemented
    if values is None:
        if not fits_weakly(<object>given[2], x.dtype):
            return NotImplemented
        require_writeable(x)
        set_item(x, mask, <object>given[2])
        return None
    if values.dtype != x.dtype or values.ndim != x.ndim \
            or not same_lengths(values, x, -1) or touches(values, x):
        return NotImplemented
    require_writeable(x)
    set_item(x, mask, (<object>values)[mask])
    return None


cdef object fill_diagonal(Row row, PyObject **given):
    """a, val"""
    cdef BaseArray x = array_in(given[0])
    if x is None or x.ndim != 2 or given[1] == NULL \
            or not fits_weakly(<object>given[1], x.dtype):
        return NotImplemented
    require_writeable(x)
    set_item(diagonal_view(x, 0), ..., <object>given[1])
    return None


cdef object assign_at(BaseArray x, object key, BaseArray values, object number,
                      Py_ssize_t count):
    """Assign to `count` elements, of which `key` says which; NotImplemented: by NumPy.

    `values` are at least as many elements, of one axis; if there are none, `number`.
    """
    if values is None:
        if not fits_weakly(number, x.dtype):
            return NotImplemented
    elif values.dtype != x.dtype or values.ndim != 1 or values.shape[0] < count \
            or touches(values, x):
        return NotImplemented
    elif values.shape[0] > count:
        values = slab(values, 0, 0, count)
    require_writeable(x)
    set_item(x, key, number if values is None else values)
    return None


cdef object place(Row row, PyObject **given):
    """arr, mask, vals"""
    cdef BaseArray x = array_in(given[0]), mask = array_in(given[1])
    if not is_mask_of(mask, x) or given[2] == NULL:
        return NotImplemented
    return assign_at(x, mask, array_in(given[2]), <object>given[2],
                     count_true(mask))


cdef object put(Row row, PyObject **given):
    """a, ind, v"""
    cdef BaseArray x = array_in(given[0]), indices = array_in(given[1])
    if x is None or not x.c_contiguous or given[2] == NULL \
            or not are_integers(indices) or not is_within(indices, -x.size, x.size - 1):
        return NotImplemented
    return assign_at(x if x.ndim == 1 else flat_view(x), indices, array_in(given[2]),
                     <object>given[2], indices.size)


cdef void range_of(BaseArray x, int64_t *low, int64_t *high) noexcept:
    """Set the smallest and largest of 0, -1 and some integers along one axis."""
    cdef Py_ssize_t i
    cdef int64_t index
    low[0], high[0] = 0, -1
    for i in range(x.size):
        index = (<int64_t *>(data_of(x) + i * x.strides[0]))[0]
        low[0], high[0] = min(low[0], index), max(high[0], index)


cdef bint are_integers(BaseArray x) noexcept:
    """Whether an array has a few int64 along one axis."""
    return x is not None and x.ndim == 1 and x.dtype == INT64 and x.size < LARGE


cdef object bincount(Row row, PyObject **given):
    """x, weights, minlength"""
    cdef BaseArray x = array_in(given[0]), weights = array_in(given[1]), counts
    cdef Py_ssize_t length = 0, i
    cdef int64_t low = 0, high = 0
    cdef int64_t *at
    if given[1] != NULL and weights is None and <object>given[1] is not None \
            or not are_integers(x) or not read_int(given[2], &length) or length < 0:
        return NotImplemented
    range_of(x, &low, &high)
    if low < 0 or high >= LARGE:
        return NotImplemented
    length = max(length, high + 1)
    counts = new_array(0, INT64 if weights is None else FLOAT64, 1, &length, NULL, True)
    # The allocation may have run Python. From here on, no Python runs.
    require_live(x)
    if weights is not None:
        require_live(weights)
        if weights.dtype != FLOAT64 or weights.ndim != 1 or weights.size != x.size:
            return NotImplemented
    if not are_integers(x) or not is_within(x, 0, length - 1):
        return NotImplemented
    for i in range(x.size):
        at = <int64_t *>data_of(counts) + (
            <int64_t *>(data_of(x) + i * x.strides[0]))[0]
        if weights is None:
            at[0] += 1
        else:
            (<double *>at)[0] += (
                <double *>(data_of(weights) + i * weights.strides[0]))[0]
    require_intact_file(x)
    if weights is not None:
        require_intact_file(weights)
    return counts


cdef bint is_within(BaseArray x, int64_t lowest, int64_t highest) noexcept:
    """Whether all of some integers along one axis are in a range."""
    cdef int64_t low = 0, high = 0
    range_of(x, &low, &high)
    return low >= lowest and high <= highest


cdef int add_all() except -1:
    """Set the rows."""
    add_function(np.where, "condition x y", where)
    add_function(np.extract, "condition arr", extract, False)
    add_function(np.compress, "condition a", extract, True)
    add_function(np.copyto, "dst src", copyto)
    add_function(np.putmask, "a mask values", putmask)
    add_function(np.fill_diagonal, "a val", fill_diagonal)
    add_function(np.place, "arr mask vals", place)
    add_function(np.put, "a ind v", put)
    add_function(np.bincount, "x weights minlength", bincount)
    return 0


add_all()

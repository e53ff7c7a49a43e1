"""NumPy's functions that select, assign and count by masks and indices."""

from cpython.object cimport PyObject
from libc.math cimport isfinite, isnan
from libc.stdint cimport int64_t

import numpy as np

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport (
    BaseArray, holds_number, is_array, new_array, require_writeable,
)
from ndx._compute.advanced_indexing cimport count_true
from ndx._compute.aliasing cimport touches
from ndx._compute.copies cimport cast
from ndx._compute.costs cimport LARGE
from ndx._compute.manipulation cimport same_lengths
from ndx._lib.dtypes cimport BOOL, FLOAT64, INT64, KIND_INT, KIND_UINT, UINT64, kind_of
from ndx._lib.layout cimport MAXOPS
from ndx._methods.indexing cimport set_item
from ndx._methods.numpy_function_table cimport Row, add_function
from ndx._methods.numpy_layout cimport diagonal_view, flat_view, slab
from ndx._methods.values cimport fits_weakly, number_with
from ndx._numpy.arguments cimport (
    any_array_in, array_in, is_plain_number, read_int,
)

from ndx._api import creation, searching


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


cdef object put_values(Row row, PyObject **given):
    """`put`: a, ind, v"""
    cdef BaseArray x = array_in(given[0]), indices = array_in(given[1])
    if x is None or not x.c_contiguous or given[2] == NULL \
            or not are_integers(indices) or not are_within(indices, -x.size, x.size):
        return NotImplemented
    return assign_at(x if x.ndim == 1 else flat_view(x), indices, array_in(given[2]),
                     <object>given[2], indices.size)


cdef bint are_integers(BaseArray x) noexcept:
    """Whether an array has a few int64 along one axis."""
    return x is not None and x.ndim == 1 and x.dtype == INT64 and x.size < LARGE


cdef void range_of(const char *data, Py_ssize_t step, Py_ssize_t count, int64_t *low,
                   int64_t *high) noexcept:
    """Set the smallest and the largest of 0, -1 and some int64."""
    low[0], high[0] = 0, -1
    for _ in range(count):
        low[0] = min(low[0], (<const int64_t *>data)[0])
        high[0] = max(high[0], (<const int64_t *>data)[0])
        data += step


cdef bint are_within(BaseArray x, int64_t low, int64_t end) except -1:
    """Whether each of some integers is at least one bound, and below the other."""
    cdef Operands operands
    cdef int64_t least = 0, most = 0
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    range_of(operands.data[0], x.strides[0], x.size, &least, &most)
    end_all(&operands)
    return low <= least and most < end


cdef object bincount(Row row, PyObject **given):
    """x, weights, minlength"""
    cdef BaseArray x = array_in(given[0]), weights = array_in(given[1]), counts
    cdef Operands operands
    cdef Py_ssize_t length = 0, step, weight_step = 0
    cdef int64_t low = 0, high = 0
    cdef const char *at
    cdef const char *weight
    if given[1] != NULL and weights is None and <object>given[1] is not None \
            or not are_integers(x) or not read_int(given[2], &length) or length < 0:
        return NotImplemented
    if weights is not None and (weights.dtype != FLOAT64 or weights.ndim != 1):
        return NotImplemented
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    range_of(operands.data[0], x.strides[0], x.size, &low, &high)
    end_all(&operands)
    if low < 0 or high >= LARGE:
        return NotImplemented
    length = max(length, high + 1)
    counts = new_array(0, INT64 if weights is None else FLOAT64, 1, &length, NULL, True)
    # The allocation may have run Python, which may have changed the operands.
    put(&operands, counts)
    if weights is not None:
        put(&operands, weights)
        weight_step = weights.strides[0]
    begin_all(&operands)
    try:
        if not are_integers(x) or weights is not None and weights.size != x.size:
            return NotImplemented
        at, step = operands.data[0], x.strides[0]
        weight = operands.data[2] if weights is not None else NULL
        for _ in range(x.size):
            high = (<const int64_t *>at)[0]
            if not 0 <= high < length:
                return NotImplemented
            if weight == NULL:
                (<int64_t *>operands.data[1])[high] += 1
            else:
                (<double *>operands.data[1])[high] += (<const double *>weight)[0]
                weight += weight_step
            at += step
    finally:
        end_all(&operands)
    return counts


cdef bint read_range(PyObject *given, double *first, double *last) except -1:
    """Read a pair of finite numbers, in order; False: it is something else."""
    if type(<object>given) is not tuple and type(<object>given) is not list \
            or len(<object>given) != 2:
        return False
    low, high = <object>given
    if not is_plain_number(low) or not is_plain_number(high):
        return False
    first[0], last[0] = low, high
    return first[0] <= last[0]


cdef object histogram(Row row, PyObject **given):
    """a, bins, range"""
    cdef BaseArray x = array_in(given[0]), counts, edges
    cdef Operands operands
    cdef Py_ssize_t bins = 10, i, place
    cdef double first = 0, last = 0, value
    cdef const double *values
    cdef const double *bounds
    if x is None or x.dtype != FLOAT64 and (
            kind_of[x.dtype] != KIND_INT and kind_of[x.dtype] != KIND_UINT) \
            or x.dtype == UINT64 or not x.c_contiguous or not 0 < x.size < LARGE \
            or not read_int(given[1], &bins) or not 0 < bins < LARGE:
        return NotImplemented
    if x.dtype != FLOAT64:
        x = cast(x, FLOAT64)
    operands.count = 0
    put(&operands, x)
    if given[2] == NULL or <object>given[2] is None:
        begin_all(&operands)
        values = <const double *>operands.data[0]
        first = last = values[0]
        for i in range(x.size):
            first, last = min(first, values[i]), max(last, values[i])
            if isnan(values[i]):
                first = last = values[i]
                break
        end_all(&operands)
    elif not read_range(given[2], &first, &last):
        return NotImplemented
    if not isfinite(last - first):
        return NotImplemented
    if first == last:
        first, last = first - 0.5, last + 0.5
    edges = creation.linspace(first, last, bins + 1)
    counts = new_array(0, INT64, 1, &bins, NULL, True)
    put(&operands, edges)
    put(&operands, counts)
    begin_all(&operands)
    try:
        values = <const double *>operands.data[0]
        bounds = <const double *>operands.data[1]
        for i in range(bins):
            if not bounds[i] < bounds[i + 1]:
                return NotImplemented
        for i in range(x.size):
            value = values[i]
            if not first <= value <= last:
                continue
            # NumPy's formula, and its correction by the edges.
            place = <Py_ssize_t>((value - first) / (last - first) * bins)
            place = min(place, bins - 1)
            if value < bounds[place]:
                place -= 1
            if value >= bounds[place + 1] and place != bins - 1:
                place += 1
            (<int64_t *>operands.data[2])[place] += 1
    finally:
        end_all(&operands)
    return counts, edges


cdef object unravel_index(Row row, PyObject **given):
    """indices, shape"""
    cdef Py_ssize_t index = -1, size = 1, i
    cdef list places = []
    if given[0] == NULL or given[1] == NULL or type(<object>given[1]) is not tuple:
        return NotImplemented
    if is_array(<object>given[0]):
        if not holds_number(<BaseArray>given[0]) \
                or (<BaseArray>given[0]).dtype != INT64:
            return NotImplemented
        index = (<object>given[0]).item()
    elif not read_int(given[0], &index):
        return NotImplemented
    for length in <tuple>given[1]:
        if type(length) is not int or not 0 < length < LARGE or size > LARGE:
            return NotImplemented
        size *= length
    if not 0 <= index < size:
        return NotImplemented
    for i in range(len(<tuple>given[1])):
        size //= (<tuple>given[1])[i]
        places.append(number_with(index // size, INT64))
        index %= size
    return tuple(places)


cdef object ravel_multi_index(Row row, PyObject **given):
    """multi_index, dims: vectors of integers, or integers, one for each axis"""
    cdef Py_ssize_t lengths[MAXOPS]
    cdef Py_ssize_t steps[MAXOPS]
    cdef Py_ssize_t i, k, index, found, count, size = 1
    cdef BaseArray x, result
    cdef Operands operands
    if given[0] == NULL or given[1] == NULL or type(<object>given[0]) is not tuple \
            or type(<object>given[1]) is not tuple:
        return NotImplemented
    axes, dims = <tuple>given[0], <tuple>given[1]
    count = len(dims)
    if not 0 < count < MAXOPS or len(axes) != count:
        return NotImplemented
    for k in range(count):
        if type(dims[k]) is not int or not 0 < dims[k] < LARGE or size > LARGE:
            return NotImplemented
        lengths[k] = dims[k]
        size *= lengths[k]
    if not is_array(axes[0]):
        found = 0
        for k in range(count):
            if type(axes[k]) is not int or not 0 <= axes[k] < lengths[k]:
                return NotImplemented
            found = found * lengths[k] + <Py_ssize_t>axes[k]
        return number_with(found, INT64)
    operands.count = 0
    for k in range(count):
        item = axes[k]
        if not is_array(item) or (<BaseArray>item).ndim != 1 \
                or (<BaseArray>item).dtype != INT64 or (<BaseArray>item).block.device \
                or not same_lengths(<BaseArray>axes[0], <BaseArray>item, -1):
            return NotImplemented
        put(&operands, <BaseArray>item)
        steps[k] = (<BaseArray>item).strides[0]
    x = axes[0]
    if x.size >= LARGE:
        return NotImplemented
    result = new_array(0, INT64, 1, x.shape, NULL, False)
    put(&operands, result)
    begin_all(&operands)
    try:
        for i in range(x.size):
            found = 0
            for k in range(count):
                index = (<int64_t *>(operands.data[k] + i * steps[k]))[0]
                if not 0 <= index < lengths[k]:
                    return NotImplemented
                found = found * lengths[k] + index
            (<int64_t *>operands.data[count])[i] = found
    finally:
        end_all(&operands)
    return result


cdef int add_all() except -1:
    """Set the rows."""
    add_function(np.ravel_multi_index, "multi_index dims", ravel_multi_index)
    add_function(np.histogram, "a bins range", histogram)
    add_function(np.unravel_index, "indices shape", unravel_index)
    add_function(np.where, "condition x y", where)
    add_function(np.extract, "condition arr", extract, False)
    add_function(np.compress, "condition a", extract, True)
    add_function(np.copyto, "dst src", copyto)
    add_function(np.putmask, "a mask values", putmask)
    add_function(np.fill_diagonal, "a val", fill_diagonal)
    add_function(np.place, "arr mask vals", place)
    add_function(np.put, "a ind v", put_values)
    add_function(np.bincount, "x weights minlength", bincount)
    return 0


add_all()

"""NumPy's functions that ndx computes itself: the rows of the table.

A function here has NumPy's parameters, of which it is given what the call has, by
place. It returns NotImplemented for what it does not know, and for what is wrong.
"""

from cpython.object cimport PyObject
from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from itertools import chain, islice

import numpy as np

from ndx._array.pinning cimport Operands, begin_all, end_all, put
from ndx._array.storage cimport (
    BaseArray, as_number, holds_number, is_array, new_array, new_empty,
)
from ndx._compute.advanced_indexing cimport count_into
from ndx._compute.aliasing cimport touches
from ndx._compute.copies cimport cast, copy, copy_into
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport binary, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.manipulation cimport join, rolled, same_lengths, tiled
from ndx._compute.matmul cimport correlated
from ndx._compute.sequences cimport array_of, from_sequence
from ndx._compute.sorting cimport partition, sorting_by_keys
from ndx._context.context cimport placing_device
from ndx._lib.dtypes cimport (
    BOOL, FLOAT64, INT64, KIND_COMPLEX, KIND_FLOAT, dtype_object, find_code, kind_of,
    promote_table,
)
from ndx._lib.layout cimport MAXDIMS, parse_shape
from ndx._methods.numpy_dispatch cimport call_function
from ndx._methods.numpy_function_table cimport Row, add_function
from ndx._methods.numpy_layout cimport (
    diagonal_view, flat_view, flipped, plain_cast, slab, swapped, with_new_axes,
)
from ndx._methods.values cimport fits_weakly
from ndx._numpy.arguments cimport (
    any_array_in, are_numbers, array_in, found_or_not, is_plain_number, read_axis,
    read_int,
)

from ndx._api import creation, manipulation, utility
from ndx._methods.ufuncs import register_ufuncs

cdef Ufunc EQUAL = find_ufunc("equal")
cdef Ufunc SUBTRACT = find_ufunc("subtract")
cdef Ufunc ATAN2 = find_ufunc("atan2")
cdef Ufunc TRUNC = find_ufunc("trunc")


# ---- new arrays ----------------------------------------------------------------------

cdef bint is_c_order(PyObject *order) except -1:
    return order == NULL or type(<object>order) is str and <object>order == "C"


cdef int code_of(PyObject *given, bint *known) except -2:
    """Return the dtype that is given; -1: none; not `known`: one that ndx has not."""
    cdef int code = -1
    known[0] = True
    if given != NULL and <object>given is not None:
        code = find_code(<object>given)
        known[0] = code >= 0
    return code


cdef object new_filled(Row row, PyObject **given):
    """`empty`, `zeros`, `ones`: shape, dtype, order.

    `row.data`: whether the elements are zeros, or the function that sets them.
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef bint known = True
    cdef int ndim
    cdef int code = FLOAT64 if given[1] == NULL else code_of(given[1], &known)
    if given[0] == NULL or not known or not is_c_order(given[2]):
        return NotImplemented
    if code < 0:
        code = FLOAT64
    try:
        if type(row.data) is bool:
            ndim = parse_shape(<object>given[0], shape)
            return new_array(placing_device(), code, ndim, shape, NULL, row.data)
        return row.data(<object>given[0], dtype=dtype_object(code))
    except (TypeError, ValueError, OverflowError):
        # NumPy raises its error.
        return NotImplemented


cdef object full(Row row, PyObject **given):
    """shape, fill_value, dtype, order"""
    if given[0] == NULL or given[1] == NULL or not is_plain_number(<object>given[1]) \
            or not is_c_order(given[3]):
        return NotImplemented
    try:
        return creation.full(<object>given[0], <object>given[1],
                             dtype=None if given[2] == NULL else <object>given[2])
    except (TypeError, ValueError, OverflowError):
        return NotImplemented


cdef object like(Row row, PyObject **given):
    """`empty_like`, `zeros_like`, `ones_like`: a, dtype"""
    cdef BaseArray x = array_in(given[0])
    if x is None or not x.c_contiguous:
        return NotImplemented
    if given[1] == NULL or <object>given[1] is None:
        return row.data(x)
    try:
        return row.data(x, dtype=<object>given[1])
    except (TypeError, ValueError):
        return NotImplemented


cdef object full_like(Row row, PyObject **given):
    """a, fill_value, dtype"""
    cdef BaseArray x = array_in(given[0])
    if x is None or not x.c_contiguous or given[1] == NULL \
            or not is_plain_number(<object>given[1]):
        return NotImplemented
    try:
        return creation.full_like(x, <object>given[1],
                                  dtype=None if given[2] == NULL else <object>given[2])
    except (TypeError, ValueError, OverflowError):
        return NotImplemented


cdef object arange(Row row, PyObject **given):
    """start, stop, step, dtype"""
    if given[0] == NULL or not are_numbers(given, 3) or given[3] != NULL \
            or given[2] != NULL and abs(<object>given[2]) == INFINITY:
        return NotImplemented
    try:
        if given[1] == NULL:
            return creation.arange(<object>given[0]) if given[2] == NULL \
                else NotImplemented
        if given[2] == NULL:
            return creation.arange(<object>given[0], <object>given[1])
        return creation.arange(
            <object>given[0], <object>given[1], <object>given[2])
    except (TypeError, ValueError, OverflowError):
        return NotImplemented


cdef object linspace(Row row, PyObject **given):
    """start, stop, num, endpoint"""
    cdef Py_ssize_t num = 50
    if given[0] == NULL or given[1] == NULL or not are_numbers(given, 2) \
            or not read_int(given[2], &num) or num < 0 \
            or given[3] != NULL and type(<object>given[3]) is not bool:
        return NotImplemented
    return creation.linspace(
        <object>given[0], <object>given[1], num,
        endpoint=True if given[3] == NULL else <object>given[3])


cdef object eye(Row row, PyObject **given):
    """N, M, k, dtype"""
    cdef Py_ssize_t rows = -1, columns = -1, k = 0
    if given[1] != NULL and <object>given[1] is None:
        given[1] = NULL
    if given[0] == NULL or not read_int(given[0], &rows) or rows < 0 \
            or not read_int(given[1], &columns) or not read_int(given[2], &k):
        return NotImplemented
    if columns < 0:
        if given[1] != NULL:
            return NotImplemented
        columns = rows
    try:
        return creation.eye(rows, columns, k=k,
                            dtype=None if given[3] == NULL else <object>given[3])
    except (TypeError, ValueError):
        return NotImplemented


cdef object diag_indices(Row row, PyObject **given):
    """n, ndim"""
    cdef Py_ssize_t n = -1, ndim = 2
    if given[0] == NULL or not read_int(given[0], &n) or n < 0 \
            or not read_int(given[1], &ndim) or not 0 <= ndim <= MAXDIMS:
        return NotImplemented
    return (creation.arange(n),) * ndim


cdef object identity(Row row, PyObject **given):
    """n, dtype"""
    cdef PyObject *all_given[4]
    all_given = [given[0], NULL, NULL, given[1]]
    return eye(row, all_given)


# ---- arrays of arrays and numbers ----------------------------------------------------

cdef object array(Row row, PyObject **given):
    """`array`, `asarray`, `asanyarray`: a, dtype; `row.data`: whether to copy."""
    cdef bint known = True
    cdef int code
    cdef BaseArray x
    if given[0] == NULL:
        return NotImplemented
    x = any_array_in(given[0])
    if x is not None:
        if given[1] == NULL or <object>given[1] is None:
            return copy(x) if row.data else x
        found = plain_cast(x, <object>given[1], row.data)
        return found_or_not(found)
    kind = type(<object>given[0])
    if kind is not list and kind is not tuple or placing_device():
        return NotImplemented
    code = code_of(given[1], &known)
    if not known:
        return NotImplemented
    return found_or_not(array_of(<object>given[0], code))


cdef object fromiter(Row row, PyObject **given):
    """iter, dtype"""
    cdef bint known = True
    cdef int code = code_of(given[1], &known)
    if given[0] == NULL or code < 0 or placing_device():
        return NotImplemented
    kind = type(<object>given[0])
    if kind is list or kind is tuple:
        return found_or_not(from_sequence(<object>given[0], code))
    left = iter(<object>given[0])
    items = list(islice(left, LARGE))
    found = from_sequence(items, code) if len(items) < LARGE else None
    if found is not None:
        return found
    return call_function(np.fromiter, (chain(items, left), <object>given[1]), {})


cdef object in_c_order(Row row, PyObject **given):
    """`ascontiguousarray`: a"""
    cdef BaseArray x = array_in(given[0])
    return NotImplemented if x is None or not x.c_contiguous else x


cdef object require(Row row, PyObject **given):
    """a"""
    return found_or_not(array_in(given[0]))


cdef object copied(Row row, PyObject **given):
    """`copy`: a"""
    cdef BaseArray x = any_array_in(given[0])
    return NotImplemented if x is None else copy(x)


# ---- views ---------------------------------------------------------------------------

cdef object at_least(Row row, PyObject **given):
    """`atleast_1d`, `atleast_2d`, `atleast_3d`: one array; `row.data`: the axes."""
    cdef BaseArray x = array_in(given[0])
    cdef int least = row.data
    if x is None:
        return NotImplemented
    if x.ndim >= least:
        return x
    if least == 2:
        return with_new_axes(x, 1, 0)
    return with_new_axes(x, 1, 1) if x.ndim == 1 else with_new_axes(x, 0, 1)


cdef object flip(Row row, PyObject **given):
    """m, axis"""
    cdef BaseArray x = array_in(given[0])
    cdef bint chosen[MAXDIMS]
    cdef int axis, i
    if x is None:
        return NotImplemented
    for i in range(x.ndim):
        chosen[i] = given[1] == NULL or <object>given[1] is None
    if given[1] != NULL and <object>given[1] is not None:
        axis = read_axis(given[1], x.ndim, -1)
        if axis < 0:
            return NotImplemented
        chosen[axis] = True
    return flipped(x, chosen)


cdef object flip_one(Row row, PyObject **given):
    """`flipud`, `fliplr`: m; `row.data`: the axis."""
    cdef BaseArray x = array_in(given[0])
    cdef bint chosen[MAXDIMS]
    cdef int axis = row.data, i
    if x is None or axis >= x.ndim:
        return NotImplemented
    for i in range(x.ndim):
        chosen[i] = i == axis
    return flipped(x, chosen)


cdef object rot90(Row row, PyObject **given):
    """m, k"""
    cdef BaseArray x = array_in(given[0])
    cdef Py_ssize_t k = 1
    cdef bint chosen[MAXDIMS]
    cdef int i
    if x is None or x.ndim < 2 or not read_int(given[1], &k):
        return NotImplemented
    k = (k % 4 + 4) % 4
    for i in range(x.ndim):
        chosen[i] = i == (1 if k == 1 else 0) and k != 0 or k == 2 and i == 1
    x = flipped(x, chosen)
    return swapped(x, 0, 1) if k % 2 else x


cdef object expand_dims(Row row, PyObject **given):
    """a, axis"""
    cdef BaseArray x = array_in(given[0])
    cdef int axis
    if x is None or given[1] == NULL or x.ndim == MAXDIMS:
        return NotImplemented
    axis = read_axis(given[1], x.ndim + 1, 0)
    if axis < 0:
        return NotImplemented
    if axis == 0 or axis == x.ndim:
        return with_new_axes(x, axis == 0, axis != 0)
    return manipulation.expand_dims(x, axis)


cdef object moveaxis(Row row, PyObject **given):
    """a, source, destination"""
    cdef BaseArray x = array_in(given[0])
    cdef int source, target
    if x is None or given[1] == NULL or given[2] == NULL:
        return NotImplemented
    source, target = read_axis(given[1], x.ndim, 0), read_axis(given[2], x.ndim, 0)
    if source < 0 or target < 0:
        return NotImplemented
    if source - target in (-1, 1):
        return swapped(x, source, target)
    return manipulation.moveaxis(x, source, target)


cdef object rollaxis(Row row, PyObject **given):
    """a, axis, start"""
    cdef BaseArray x = array_in(given[0])
    cdef Py_ssize_t start = 0
    cdef int axis
    if x is None or given[1] == NULL or not read_int(given[2], &start):
        return NotImplemented
    axis = read_axis(given[1], x.ndim, 0)
    if axis < 0 or not 0 <= start <= x.ndim:
        return NotImplemented
    return manipulation.moveaxis(x, axis, start - 1 if start > axis else start)


cdef object broadcast_to(Row row, PyObject **given):
    """array, shape"""
    cdef BaseArray x = array_in(given[0]), view
    if x is None or given[1] == NULL or type(<object>given[1]) is not tuple:
        return NotImplemented
    try:
        view = manipulation.broadcast_to(x, <object>given[1])
    except (TypeError, ValueError):
        return NotImplemented
    view.readonly = True
    return view


cdef object attribute(Row row, PyObject **given):
    """One array; `row.data`: the attribute's name."""
    x = any_array_in(given[0])
    return NotImplemented if x is None else getattr(x, row.data)


cdef object imag(Row row, PyObject **given):
    """val"""
    cdef BaseArray x = any_array_in(given[0]), zeros
    if x is None:
        return NotImplemented
    if holds_number(x) or kind_of[x.dtype] == KIND_COMPLEX:
        return (<object>x).imag
    zeros = new_array(0, x.dtype, x.ndim, x.shape, NULL, True)
    # As those of NumPy, which belong to no array.
    zeros.readonly = True
    return zeros


cdef object diag(Row row, PyObject **given):
    """v, k"""
    cdef BaseArray x = array_in(given[0]), made, view
    cdef Py_ssize_t k = 0, length
    cdef Py_ssize_t shape[2]
    if x is None or x.ndim > 2 or not read_int(given[1], &k):
        return NotImplemented
    if x.ndim == 2:
        view = diagonal_view(x, k)
        view.readonly = True
        return view
    length = x.shape[0] + abs(k)
    if length >= LARGE:
        return NotImplemented
    shape = [length, length]
    made = new_array(0, x.dtype, 2, shape, NULL, True)
    copy_into(diagonal_view(made, k), x)
    return made


cdef object vander(Row row, PyObject **given):
    """x, N, increasing"""
    cdef BaseArray x = array_in(given[0]), made
    cdef Operands operands
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t count = -1, place, power, i
    cdef const char *at
    cdef double value, factor
    cdef uint64_t whole, times
    cdef bint rises = given[2] != NULL and <object>given[2] is True
    if x is None or x.ndim != 1 or x.dtype != FLOAT64 and x.dtype != INT64 \
            or not read_int(given[1], &count) or x.size * max(count, 1) >= LARGE \
            or given[2] != NULL and type(<object>given[2]) is not bool:
        return NotImplemented
    if given[1] == NULL:
        count = x.size
    if not 0 < count < LARGE:
        return NotImplemented
    shape = [x.size, count]
    made = new_array(0, x.dtype, 2, shape, NULL, False)
    operands.count = 0
    put(&operands, x)
    put(&operands, made)
    begin_all(&operands)
    for i in range(x.size):
        at = operands.data[0] + i * x.strides[0]
        factor, value = (<const double *>at)[0], 1.0
        times, whole = (<const uint64_t *>at)[0], 1
        for power in range(count):
            place = i * count + (power if rises else count - 1 - power)
            if x.dtype == FLOAT64:
                (<double *>operands.data[1])[place] = value
                value *= factor
            else:
                (<uint64_t *>operands.data[1])[place] = whole
                whole *= times
    end_all(&operands)
    return made


cdef object triangle(Row row, PyObject **given):
    """`tril`, `triu`: m, k"""
    cdef BaseArray x = array_in(given[0])
    cdef Py_ssize_t k = 0
    if x is None or x.ndim < 2 or not read_int(given[1], &k):
        return NotImplemented
    return row.data(x, k=k)


cdef object split(Row row, PyObject **given):
    """`split`, `array_split`: ary, indices_or_sections, axis."""
    cdef BaseArray x = array_in(given[0])
    cdef int axis
    if x is None:
        return NotImplemented
    axis = read_axis(given[2], x.ndim, 0)
    return NotImplemented if axis < 0 else parts_of(x, given[1], axis, row.data)


cdef object split_along(Row row, PyObject **given):
    """`hsplit`, `vsplit`, `dsplit`: ary, indices_or_sections; `row.data`: the axis."""
    cdef BaseArray x = array_in(given[0])
    cdef int axis = row.data
    if x is None or x.ndim < (axis + 1 if axis != 1 else 1):
        return NotImplemented
    if axis == 0 and x.ndim < 2:
        return NotImplemented
    return parts_of(x, given[1], axis if x.ndim > 1 else 0, False)


cdef object parts_of(BaseArray x, PyObject *given, int axis, bint uneven):
    """Return the parts of an array along an axis, as views."""
    cdef Py_ssize_t length = x.shape[axis], count = 0, start = 0, stop, i
    cdef list parts = []
    if given == NULL or type(<object>given) is not int \
            or not read_int(given, &count) or count <= 0 or count > LARGE \
            or not uneven and length % count:
        return NotImplemented
    for i in range(count):
        stop = start + length // count + (i < length % count)
        parts.append(slab(x, axis, start, stop))
        start = stop
    return parts


# ---- joining -------------------------------------------------------------------------

cdef list plain_arrays(object arrays):
    """Return arrays and lists of numbers as a list of arrays; None for anything else.

    NumPy's result has the order of the axes of its arguments, ndx's is in C order.
    """
    cdef BaseArray array
    cdef list found = []
    cdef bint any_array = False
    if type(arrays) is not list and type(arrays) is not tuple:
        return None
    for item in arrays:
        if is_array(item):
            array = item
            any_array = True
            if array.block.device or array.ndim != 1 and not array.c_contiguous:
                return None
        elif type(item) is list or type(item) is tuple:
            array = from_sequence(item, -1)
            if array is None:
                return None
        else:
            return None
        found.append(array)
    return found if any_array else None


cdef object joined(list arrays, Py_ssize_t axis):
    """Join arrays along an axis; NotImplemented if their shapes don't match."""
    cdef BaseArray first = arrays[0]
    if axis < 0:
        axis += first.ndim
    if not 0 <= axis < first.ndim:
        return NotImplemented
    for item in arrays:
        if not same_lengths(first, <BaseArray>item, axis):
            return NotImplemented
    return join(arrays, axis, False)


cdef object stacked(list arrays, Py_ssize_t axis):
    """Join arrays along a new axis; NotImplemented if their shapes don't match."""
    cdef BaseArray first = arrays[0]
    if axis < 0:
        axis += first.ndim + 1
    if not 0 <= axis <= first.ndim or first.ndim == MAXDIMS:
        return NotImplemented
    for item in arrays:
        if not same_lengths(first, <BaseArray>item, -1):
            return NotImplemented
    return join(arrays, axis, True)


cdef list arrays_in(PyObject *given):
    return None if given == NULL else plain_arrays(<object>given)


cdef object join_along(Row row, PyObject **given):
    """`concatenate`, `stack`: arrays, axis, out; `row.data`: whether that is new."""
    cdef list arrays = arrays_in(given[0])
    cdef Py_ssize_t axis = 0
    if arrays is None or given[2] != NULL or not read_int(given[1], &axis):
        return NotImplemented
    return stacked(arrays, axis) if row.data else joined(arrays, axis)


cdef object join_vectors(Row row, PyObject **given):
    """`hstack`, `vstack`, `column_stack`: tup.

    `row.data`: the new axis of vectors, None for no new one; and the axis of others.
    """
    cdef list arrays = arrays_in(given[0])
    if arrays is None:
        return NotImplemented
    new, axis = row.data
    if (<BaseArray>arrays[0]).ndim != 1:
        return joined(arrays, axis)
    return joined(arrays, 0) if new is None else stacked(arrays, new)


cdef object dstack(Row row, PyObject **given):
    """tup"""
    cdef list arrays = arrays_in(given[0])
    cdef BaseArray first
    if arrays is None:
        return NotImplemented
    first = arrays[0]
    if first.ndim == 0:
        return NotImplemented
    if first.ndim > 2:
        return joined(arrays, 2)
    found = stacked(arrays, -1)
    if found is NotImplemented or first.ndim == 2:
        return found
    return with_new_axes(found, 1, 0)


cdef object join_items(Row row, PyObject **given):
    """`r_`, `c_`: vectors of one dtype and numbers; `row.data`: whether as columns."""
    cdef list items = []
    cdef int code = -1
    if type(<object>given[0]) is not tuple:
        return NotImplemented
    for item in <tuple>given[0]:
        if not is_array(item):
            continue
        if (<BaseArray>item).block.device or (<BaseArray>item).ndim > (not row.data) \
                and (<BaseArray>item).ndim != 1 \
                or code >= 0 and (<BaseArray>item).dtype != code:
            return NotImplemented
        code = (<BaseArray>item).dtype
    if code < 0:
        return NotImplemented
    for item in <tuple>given[0]:
        if is_array(item) and (<BaseArray>item).ndim == 1:
            items.append(item)
        elif row.data or not is_array(item) and not fits_weakly(item, code):
            return NotImplemented
        else:
            item = from_sequence([item], code)
            if item is None:
                return NotImplemented
            items.append(item)
    return stacked(items, 1) if row.data else joined(items, 0)


cdef BaseArray vector(PyObject *given):
    """Return an array, a number or a list of numbers in one axis; None for all else."""
    cdef BaseArray x = array_in(given)
    if x is not None:
        return (x if x.ndim == 1 else flat_view(x)) if x.c_contiguous else None
    if given == NULL:
        return None
    kind = type(<object>given)
    if kind is list or kind is tuple:
        x = from_sequence(<object>given, -1)
        return x if x is None or x.ndim == 1 else flat_view(x)
    return from_sequence([<object>given], -1)


cdef object append(Row row, PyObject **given):
    """arr, values"""
    cdef BaseArray x, values
    if array_in(given[0]) is None and array_in(given[1]) is None:
        return NotImplemented
    x, values = vector(given[0]), vector(given[1])
    return NotImplemented if x is None or values is None \
        else join([x, values], 0, False)


# ---- reductions and differences ------------------------------------------------------

cdef object differences(BaseArray x, int axis):
    """Return the differences of neighbours; NotImplemented for none, and of bools."""
    if x.dtype == BOOL or x.shape[axis] == 0:
        return NotImplemented
    return binary(SUBTRACT, slab(x, axis, 1, x.shape[axis]),
                  slab(x, axis, 0, x.shape[axis] - 1), None)


cdef object diff(Row row, PyObject **given):
    """a, n, axis"""
    cdef BaseArray x = array_in(given[0])
    cdef Py_ssize_t n = 1
    cdef int axis
    if x is None or not read_int(given[1], &n) or not 1 <= n <= x.size:
        return NotImplemented
    axis = read_axis(given[2], x.ndim, x.ndim - 1)
    if axis < 0:
        return NotImplemented
    for _ in range(n):
        found = differences(x, axis)
        if found is NotImplemented:
            return found
        x = found
    return x


cdef object ediff1d(Row row, PyObject **given):
    """ary"""
    cdef BaseArray x = array_in(given[0])
    return NotImplemented if x is None or x.ndim != 1 else differences(x, 0)


cdef object fix(Row row, PyObject **given):
    """x"""
    cdef BaseArray x = array_in(given[0])
    if x is None or kind_of[x.dtype] != KIND_FLOAT:
        return NotImplemented
    return unary(TRUNC, x, None)


cdef object angle(Row row, PyObject **given):
    """z"""
    cdef BaseArray x = array_in(given[0])
    if x is None or kind_of[x.dtype] != KIND_COMPLEX:
        return NotImplemented
    return binary(ATAN2, (<object>x).imag, (<object>x).real, None)


cdef object average(Row row, PyObject **given):
    """a, axis, weights"""
    x, weights = array_in(given[0]), array_in(given[2])
    if x is None or (<BaseArray>x).dtype != FLOAT64:
        return NotImplemented
    axis = None if given[1] == NULL else <object>given[1]
    if given[2] == NULL or <object>given[2] is None:
        return x.mean(axis)
    if weights is None or (<BaseArray>weights).dtype != FLOAT64 or axis is not None \
            or (<BaseArray>x).size >= LARGE or (<BaseArray>x).ndim != \
            (<BaseArray>weights).ndim or not same_lengths(x, weights, -1):
        return NotImplemented
    total = weights.sum()
    return (x * weights).sum() / total if total else NotImplemented


cdef BaseArray vector_in(PyObject *given, int dtype):
    """Return a small vector, or a list of numbers; None for anything else.

    A list has the given dtype, unless that is -1.
    """
    cdef BaseArray x = array_in(given)
    if x is None and given != NULL and (
            type(<object>given) is list or type(<object>given) is tuple):
        x = from_sequence(<object>given, -1)
        if x is not None and dtype >= 0 and promote_table[x.dtype][dtype] == dtype:
            x = cast(x, dtype)
    return None if x is None or x.ndim != 1 or not 0 < x.size < LARGE else x


cdef dict CORRELATED = {"valid": 0, "same": 1, "full": 2}


cdef object correlate(Row row, PyObject **given):
    """`convolve`, `correlate`: a, v, mode

    `row.data`: the mode by default, and whether the second vector is reversed.
    """
    cdef BaseArray x = vector_in(given[0], -1), y
    cdef bint chosen[1]
    if x is None or kind_of[x.dtype] == KIND_COMPLEX or x.dtype == BOOL:
        return NotImplemented
    y = vector_in(given[1], x.dtype)
    mode, reverse = row.data
    if given[2] != NULL:
        mode = <object>given[2]
    if y is None or y.dtype != x.dtype or type(mode) is not str \
            or mode not in CORRELATED:
        return NotImplemented
    if reverse:
        if y.size > x.size:
            x, y = y, x
        chosen[0] = True
        y = flipped(y, chosen)
    return correlated(x, y, CORRELATED[mode])


cdef object running_sum(Row row, PyObject **given):
    """`cumulative_sum`, `cumulative_prod`: x; `row.data`: the method's name."""
    x = array_in(given[0])
    if x is None or (<BaseArray>x).ndim != 1:
        return NotImplemented
    return getattr(x, row.data)()


cdef object count_nonzero(Row row, PyObject **given):
    """a"""
    cdef BaseArray x = any_array_in(given[0]), count
    if x is None or x.size >= LARGE:
        return NotImplemented
    count = new_empty(INT64, 0, x.shape)
    count_into(count, x)
    return as_number(count)


cdef object argwhere(Row row, PyObject **given):
    """a"""
    cdef object x = array_in(given[0])
    if x is None or (<BaseArray>x).ndim != 1 or not (<BaseArray>x).c_contiguous:
        return NotImplemented
    return x.nonzero()[0].reshape(-1, 1)


cdef object flatnonzero(Row row, PyObject **given):
    """a"""
    cdef object x = any_array_in(given[0])
    return NotImplemented if x is None else x.reshape(-1).nonzero()[0]


cdef object sort(Row row, PyObject **given):
    """a"""
    cdef object x = array_in(given[0])
    if x is None:
        return NotImplemented
    x = copy(x)
    x.sort()
    return x


cdef object lexsort(Row row, PyObject **given):
    """keys"""
    cdef list keys = arrays_in(given[0])
    if keys is None or len(keys) > 2:
        return NotImplemented
    for key in keys:
        if (<BaseArray>key).ndim != 1 or (<BaseArray>key).size >= LARGE \
                or not same_lengths(<BaseArray>keys[0], <BaseArray>key, -1):
            return NotImplemented
    return sorting_by_keys(keys)


cdef object partition_vector(Row row, PyObject **given):
    """`argpartition`, `partition`: a, kth; `row.data`: whether indices are wanted."""
    cdef BaseArray x = array_in(given[0])
    cdef Py_ssize_t place = 0
    if x is None or given[1] == NULL or x.ndim != 1 or x.size >= LARGE \
            or not read_int(given[1], &place) or not -x.size <= place < x.size:
        return NotImplemented
    if row.data:
        return partition(x, place, True)
    x = copy(x)
    partition(x, place, False)
    return x


cdef object open_grid(Row row, PyObject **given):
    """`ix_`: vectors of integers"""
    cdef list axes = []
    cdef BaseArray x
    cdef int i, count = 0
    while count < 3 and given[count] != NULL:
        count += 1
    for i in range(count):
        x = array_in(given[i])
        if x is None or x.ndim != 1 or x.size == 0 or x.dtype == BOOL:
            return NotImplemented
        axes.append(with_new_axes(x, i, count - 1 - i))
    return tuple(axes) if axes else NotImplemented


cdef object roll(Row row, PyObject **given):
    """a, shift, axis"""
    cdef BaseArray x = any_array_in(given[0])
    if x is None or given[1] == NULL:
        return NotImplemented
    return found_or_not(rolled(
        x, <object>given[1], None if given[2] == NULL else <object>given[2]))


cdef object tile(Row row, PyObject **given):
    """A, reps"""
    cdef BaseArray x = any_array_in(given[0])
    if x is None or given[1] == NULL:
        return NotImplemented
    counts = <object>given[1]
    return found_or_not(tiled(x, (counts,) if type(counts) is int else counts))


# ---- questions -----------------------------------------------------------------------

cdef object is_complex(Row row, PyObject **given):
    """`iscomplexobj`, `isrealobj`: x; `row.data`: the answer for complex numbers."""
    cdef BaseArray x = any_array_in(given[0])
    if x is None:
        return NotImplemented
    return (kind_of[x.dtype] == KIND_COMPLEX) == <bint>row.data


cdef object is_scalar(Row row, PyObject **given):
    """element"""
    cdef BaseArray x = any_array_in(given[0])
    return NotImplemented if x is None else holds_number(x)


cdef object is_iterable(Row row, PyObject **given):
    """y"""
    return NotImplemented if array_in(given[0]) is None else True


cdef object array_equal(Row row, PyObject **given):
    """a1, a2"""
    cdef BaseArray x = any_array_in(given[0]), y = any_array_in(given[1])
    if x is None or y is None:
        return NotImplemented
    if x.ndim != y.ndim or not same_lengths(x, y, -1):
        return False
    return bool(utility.all(binary(EQUAL, x, y, None)))


cdef object result_type(Row row, PyObject **given):
    """Two arrays."""
    cdef BaseArray x = array_in(given[0]), y = array_in(given[1])
    if x is None or y is None:
        return NotImplemented
    return dtype_object(promote_table[x.dtype][y.dtype])


cdef object share_no_memory(Row row, PyObject **given):
    """`may_share_memory`, `shares_memory`: a, b. NumPy answers for one block."""
    cdef BaseArray x = array_in(given[0]), y = array_in(given[1])
    if x is None or y is None or x.block == y.block or touches(x, y):
        return NotImplemented
    return False


# ---- the table -----------------------------------------------------------------------

cdef int add_all() except -1:
    """Set the rows of the functions that ndx computes."""
    for name, how in (("empty", False), ("zeros", True), ("ones", creation.ones)):
        add_function(getattr(np, name), "shape dtype order", new_filled, how)
        name += "_like"
        first = "prototype" if name == "empty_like" else "a"
        add_function(getattr(np, name), f"{first} dtype", like, getattr(creation, name))
    add_function(np.full, "shape fill_value dtype order", full)
    add_function(np.full_like, "a fill_value dtype", full_like)
    # The first of NumPy's parameters is the end if there is no other.
    add_function(np.arange, "start_or_stop stop_ step_ dtype", arange)
    add_function(np.linspace, "start stop num endpoint", linspace)
    add_function(np.eye, "N M k dtype", eye)
    add_function(np.identity, "n dtype", identity)
    add_function(np.diag_indices, "n ndim", diag_indices)

    add_function(np.array, "object dtype", array, True)
    add_function(np.asarray, "a dtype", array, False)
    add_function(np.fromiter, "iter dtype", fromiter)
    add_function(np.ascontiguousarray, "a", in_c_order)
    add_function(np.require, "a", require)
    add_function(np.copy, "a", copied)

    add_function(np.atleast_1d, "arys", at_least, 1)
    add_function(np.atleast_2d, "arys", at_least, 2)
    add_function(np.atleast_3d, "arys", at_least, 3)
    add_function(np.flip, "m axis", flip)
    add_function(np.flipud, "m", flip_one, 0)
    add_function(np.fliplr, "m", flip_one, 1)
    add_function(np.rot90, "m k", rot90)
    add_function(np.expand_dims, "a axis", expand_dims)
    add_function(np.moveaxis, "a source destination", moveaxis)
    add_function(np.rollaxis, "a axis start", rollaxis)
    add_function(np.broadcast_to, "array shape", broadcast_to)
    add_function(np.real, "val", attribute, "real")
    add_function(np.imag, "val", imag)
    add_function(np.diag, "v k", diag)
    add_function(np.vander, "x N increasing", vander)
    add_function(np.tril, "m k", triangle, creation.tril)
    add_function(np.triu, "m k", triangle, creation.triu)
    add_function(np.split, "ary indices_or_sections axis", split, False)
    add_function(np.array_split, "ary indices_or_sections axis", split, True)
    for axis, name in enumerate(("vsplit", "hsplit", "dsplit")):
        add_function(getattr(np, name), "ary indices_or_sections", split_along, axis)

    add_function(np.concatenate, "arrays axis out", join_along, False)
    add_function(np.stack, "arrays axis out", join_along, True)
    add_function(np.hstack, "tup", join_vectors, (None, 1))
    add_function(np.vstack, "tup", join_vectors, (0, 0))
    add_function(np.dstack, "tup", dstack)
    add_function(np.column_stack, "tup", join_vectors, (1, 1))
    add_function(np.array_equal, "a1 a2", array_equal)
    add_function(np.append, "arr values", append)
    add_function(np.r_, "key", join_items, False)
    add_function(np.c_, "key", join_items, True)
    add_function(np.diff, "a n axis", diff)
    add_function(np.ediff1d, "ary", ediff1d)
    add_function(np.fix, "x", fix)
    add_function(np.angle, "z", angle)
    add_function(np.average, "a axis weights", average)
    add_function(np.convolve, "a v mode", correlate, ("full", True))
    add_function(np.correlate, "a v mode", correlate, ("valid", False))
    add_function(np.cumulative_sum, "x", running_sum, "cumsum")
    add_function(np.cumulative_prod, "x", running_sum, "cumprod")
    add_function(np.count_nonzero, "a", count_nonzero)
    add_function(np.flatnonzero, "a", flatnonzero)
    add_function(np.argwhere, "a", argwhere)
    add_function(np.sort, "a", sort)
    add_function(np.lexsort, "keys", lexsort)
    add_function(np.partition, "a kth", partition_vector, False)
    add_function(np.argpartition, "a kth", partition_vector, True)
    add_function(np.ix_, "x_ y_ z_", open_grid)
    add_function(np.roll, "a shift axis", roll)
    add_function(np.tile, "A reps", tile)

    add_function(np.ndim, "a", attribute, "ndim")
    add_function(np.shape, "a", attribute, "shape")
    add_function(np.size, "a", attribute, "size")
    add_function(np.iscomplexobj, "x", is_complex, True)
    add_function(np.isrealobj, "x", is_complex, False)
    add_function(np.isscalar, "element", is_scalar)
    add_function(np.iterable, "y", is_iterable)
    add_function(np.result_type, "x y", result_type)
    add_function(np.may_share_memory, "a b", share_no_memory)
    add_function(np.shares_memory, "a b", share_no_memory)

    return 0


add_all()
# Ufuncs that the standard has not.
register_ufuncs([
    "cbrt", "deg2rad", "degrees", "divmod", "exp2", "fabs", "float_power", "fmax",
    "fmin", "gcd", "heaviside", "lcm", "modf", "rad2deg", "radians",
])

"""NumPy's functions of sorted elements, and reductions that pass over NaN.

Few elements are sorted in a copy; NumPy's functions do so in some twenty steps.
"""

from cpython.object cimport PyObject
from libc.math cimport floor, isnan

import numpy as np

from ndx._array.pinning cimport Operands, begin_all, end_all, put, put_constant
from ndx._array.storage cimport BaseArray, as_number, new_empty
from ndx._compute.copies cimport cast, copy
from ndx._compute.elementwise cimport binary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.sequences cimport from_sequence
from ndx._compute.sorting cimport sort_in_place
from ndx._lib.dtypes cimport FLOAT64, INT64, KIND_COMPLEX, KIND_FLOAT, kind_of
from ndx._methods.numpy_function_table cimport Row, add_function
from ndx._methods.numpy_layout cimport flat_view, slab
from ndx._methods.values cimport number_with
from ndx._numpy.arguments cimport array_in, is_plain_number, read_axis

from ndx._compute.sorting import unique_parts

cdef enum:
    FEW = 4096                   # elements: of more NumPy does not sort all

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc DIVIDE = find_ufunc("divide")


cdef BaseArray flat_doubles(PyObject *given):
    """Return few float64 or int64 in one axis, as new floats; None for all else."""
    cdef BaseArray x = array_in(given)
    if x is None or x.dtype != FLOAT64 and x.dtype != INT64 or not 0 < x.size <= FEW:
        return None
    x = copy(x) if x.dtype == FLOAT64 else cast(x, FLOAT64)
    if not x.c_contiguous:
        return None
    return x if x.ndim == 1 else flat_view(x)


cdef BaseArray sorted_doubles(PyObject *given):
    """Return what `flat_doubles` returns, sorted; None also if there is a NaN."""
    cdef BaseArray x = flat_doubles(given)
    cdef Operands operands
    cdef double last
    if x is None:
        return None
    sort_in_place(x, 0, False)
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    last = (<double *>operands.data[0])[x.size - 1]
    end_all(&operands)
    return None if isnan(last) else x


cdef object median(Row row, PyObject **given):
    """a, axis"""
    cdef BaseArray x = array_in(given[0]), low
    cdef Py_ssize_t middle
    cdef int axis = 0
    if given[1] == NULL or <object>given[1] is None or x is not None and x.ndim == 1:
        if given[1] != NULL and <object>given[1] is not None \
                and read_axis(given[1], 1, 0) < 0:
            return NotImplemented
        x = sorted_doubles(given[0])
        if x is None:
            return NotImplemented
    else:
        if x is None or x.dtype != FLOAT64 or not 0 < x.size <= FEW:
            return NotImplemented
        axis = read_axis(given[1], x.ndim, -1)
        if axis < 0:
            return NotImplemented
        x = copy(x)
        sort_in_place(x, axis, False)
        low = slab(x, axis, x.shape[axis] - 1, x.shape[axis])
        if np.isnan(low).any():
            return NotImplemented
    middle = x.shape[axis] // 2
    low = slab(x, axis, middle, middle + 1)
    # A mean, whose sum starts with 0.0.
    low = binary(ADD, low, 0.0, None)
    if x.shape[axis] % 2 == 0:
        low = binary(DIVIDE, binary(ADD, slab(x, axis, middle - 1, middle), low, None),
                     2.0, None)
    shape = list((<object>x).shape)
    del shape[axis]
    return as_number((<object>low).reshape(shape)) if not shape \
        else (<object>low).reshape(shape)


cdef double interpolated(const double *x, Py_ssize_t n, double q) noexcept:
    """Return a quantile of sorted numbers, by NumPy's formula of method "linear"."""
    cdef double at = (n - 1) * q, low, high, step, gamma
    cdef Py_ssize_t before = <Py_ssize_t>floor(at)
    if before >= n - 1:
        low = high = x[n - 1]
        gamma = at + 1
    else:
        low, high = x[before], x[before + 1]
        gamma = at - before
    step = high - low
    return high - step * (1 - gamma) if gamma >= 0.5 else low + step * gamma


cdef object quantile(Row row, PyObject **given):
    """`quantile`, `percentile`: a, q; `row.data`: what `q` is a part of."""
    cdef BaseArray x, found = None, parts = None
    cdef Operands operands
    cdef Py_ssize_t i, count = 1
    cdef double q = 0, whole = row.data, alone = 0
    if given[1] == NULL:
        return NotImplemented
    if not is_plain_number(<object>given[1]):
        parts = array_in(given[1])
        if parts is None and type(<object>given[1]) in (list, tuple):
            parts = from_sequence(<object>given[1], FLOAT64)
        if parts is None or parts.ndim != 1 or parts.dtype != FLOAT64 \
                or not parts.c_contiguous or parts.size > FEW:
            return NotImplemented
    x = array_in(given[0])
    if x is None or x.dtype != FLOAT64:
        return NotImplemented
    x = sorted_doubles(given[0])
    if x is None:
        return NotImplemented
    operands.count = 0
    put(&operands, x)
    if parts is None:
        q = <object>given[1]
        put_constant(&operands, <char *>&q)
        put_constant(&operands, <char *>&alone)
    else:
        found = new_empty(FLOAT64, 1, parts.shape)
        count = found.size
        if parts.size != count:
            return NotImplemented
        put(&operands, parts)
        put(&operands, found)
    begin_all(&operands)
    try:
        for i in range(count):
            q = (<double *>operands.data[1])[i]
            if not 0 <= q <= whole:
                return NotImplemented
            (<double *>operands.data[2])[i] = interpolated(
                <double *>operands.data[0], x.size, q / whole)
    finally:
        end_all(&operands)
    return number_with(alone, FLOAT64) if parts is None else found


cdef object unique(Row row, PyObject **given):
    """ar, return_index, return_inverse, return_counts"""
    cdef BaseArray x = array_in(given[0])
    cdef bint[4] asked
    cdef int part
    if x is None or kind_of[x.dtype] == KIND_COMPLEX:
        return NotImplemented
    for part in range(1, 4):
        if given[part] != NULL and type(<object>given[part]) is not bool:
            return NotImplemented
        asked[part] = given[part] != NULL and <object>given[part] is True
    parts = unique_parts(x, asked[1], asked[2], asked[3])
    if parts is None:
        return NotImplemented
    if kind_of[x.dtype] == KIND_FLOAT and np.isnan(parts[0][len(parts[0]) - 1]):
        # NumPy takes equal NaNs for one.
        return NotImplemented
    parts = [each for each in parts if each is not None]
    return parts[0] if len(parts) == 1 else tuple(parts)


cdef bint is_vector(BaseArray x) noexcept:
    return x is not None and x.ndim == 1 and x.dtype == FLOAT64 and x.c_contiguous \
        and 0 < x.size <= FEW


cdef object interp(Row row, PyObject **given):
    """x, xp, fp"""
    cdef BaseArray x = array_in(given[0]), xp = array_in(given[1])
    cdef BaseArray fp = array_in(given[2]), found = None
    cdef Operands operands
    cdef Py_ssize_t i, count = 1
    cdef double value = 0, alone = 0
    cdef const double *points
    if not is_vector(xp) or not is_vector(fp) or xp.size != fp.size:
        return NotImplemented
    if x is None:
        if given[0] == NULL or not is_plain_number(<object>given[0]):
            return NotImplemented
        value = <object>given[0]
    else:
        if x.dtype != FLOAT64 or not x.c_contiguous or x.size > FEW:
            return NotImplemented
        found = new_empty(FLOAT64, x.ndim, x.shape)
        count = found.size
    # The allocation may have run Python.
    if not is_vector(xp) or not is_vector(fp) or xp.size != fp.size \
            or x is not None and x.size != count:
        return NotImplemented
    operands.count = 0
    put(&operands, xp)
    put(&operands, fp)
    if x is None:
        put_constant(&operands, <char *>&value)
        put_constant(&operands, <char *>&alone)
    else:
        put(&operands, x)
        put(&operands, found)
    begin_all(&operands)
    try:
        points = <const double *>operands.data[0]
        for i in range(1, xp.size):
            if not points[i - 1] <= points[i]:
                return NotImplemented
        for i in range(count):
            (<double *>operands.data[3])[i] = at_point(
                (<double *>operands.data[2])[i], points, <double *>operands.data[1],
                xp.size)
    finally:
        end_all(&operands)
    return number_with(alone, FLOAT64) if x is None else found


cdef double at_point(double value, const double *x, const double *y,
                     Py_ssize_t n) noexcept:
    """Return a value of the piecewise linear function, by NumPy's formula."""
    cdef Py_ssize_t low = 0, high = n, middle
    cdef double slope, found
    if n == 1:
        return y[0]
    if isnan(value):
        return value
    # The last point that is not above the value.
    while low < high:
        middle = (low + high) // 2
        if x[middle] <= value:
            low = middle + 1
        else:
            high = middle
    low -= 1
    if low < 0:
        return y[0]
    if low == n - 1 or x[low] == value:
        return y[low]
    slope = (y[low + 1] - y[low]) / (x[low + 1] - x[low])
    found = slope * (value - x[low]) + y[low]
    if isnan(found):
        found = slope * (value - x[low + 1]) + y[low + 1]
        if isnan(found) and y[low] == y[low + 1]:
            found = y[low]
    return found


cdef object without_nan(Row row, PyObject **given):
    """`nanmax`, `nansum`, ...: a, axis; `row.data`: the method, if there is no NaN."""
    cdef BaseArray x = array_in(given[0])
    cdef Operands operands
    cdef Py_ssize_t i
    if x is None or x.dtype != FLOAT64 or not x.c_contiguous or not 0 < x.size <= FEW:
        return NotImplemented
    operands.count = 0
    put(&operands, x)
    begin_all(&operands)
    try:
        for i in range(x.size):
            if isnan((<double *>operands.data[0])[i]):
                return NotImplemented
    finally:
        end_all(&operands)
    return getattr(x, row.data)(None if given[1] == NULL else <object>given[1])


cdef int add_all() except -1:
    """Set the rows."""
    for name in ("argmax", "argmin", "cumprod", "cumsum", "max", "mean", "min", "prod",
                 "std", "sum", "var"):
        add_function(getattr(np, f"nan{name}"), "a axis", without_nan, name)
    add_function(np.nanmedian, "a axis", median)
    add_function(np.nanpercentile, "a q", quantile, 100.0)
    add_function(np.nanquantile, "a q", quantile, 1.0)
    add_function(np.median, "a axis", median)
    add_function(np.quantile, "a q", quantile, 1.0)
    add_function(np.percentile, "a q", quantile, 100.0)
    add_function(np.unique, "ar return_index return_inverse return_counts", unique)
    add_function(np.interp, "x xp fp", interp)
    return 0


add_all()

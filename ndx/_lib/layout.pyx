"""Pure arithmetic on shapes, strides and axes, without arrays or their memory.

Strides are in bytes, sizes in elements.
"""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF

from ndx._lib.dtypes cimport is_numpy_bool
from ndx._lib.integers cimport int_value

import operator
import sys
from itertools import islice

from numpy.exceptions import AxisError

cdef object index = operator.index

cdef extern from "Python.h":
    Py_ssize_t PyNumber_AsSsize_t(object o, PyObject *exc) except? -1
    Py_ssize_t PY_SSIZE_T_MAX
    PyObject *PyExc_OverflowError
    PyObject *PyExc_IndexError
    bint PyLong_CheckExact(object o) noexcept

cdef extern from "ndx/internal/arithmetic.h" nogil:
    bint ndx_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out)


cdef Py_ssize_t count_elements(int ndim, const Py_ssize_t *shape,
                               Py_ssize_t itemsize) except -1:
    """Return the number of elements; raise ValueError if the bytes overflow."""
    cdef Py_ssize_t nbytes = itemsize, size = 1
    cdef int axis
    for axis in range(ndim):
        if shape[axis] <= 0 or ndx_multiply(nbytes, shape[axis], &nbytes):
            return count_of_unusual(ndim, shape, itemsize)
        size *= shape[axis]
    return size


cdef Py_ssize_t count_of_unusual(int ndim, const Py_ssize_t *shape,
                                 Py_ssize_t itemsize) except -1:
    """Return 0 for a valid shape without elements; ValueError for an invalid one."""
    cdef Py_ssize_t nbytes = itemsize
    cdef int axis
    for axis in range(ndim):
        if shape[axis] < 0:
            raise ValueError(
                f"shape {shape_tuple(ndim, shape)} has the negative length "
                f"{shape[axis]} on axis {axis}; lengths are 0 or more")
    # Shapes without elements are checked, too: NumPy views of them can't be made.
    for axis in range(ndim):
        if shape[axis] and ndx_multiply(nbytes, shape[axis], &nbytes):
            # Some callers count a shape before they know the dtype.
            each = f" with {itemsize} bytes an element" if itemsize > 1 else ""
            raise ValueError(
                f"an array of shape {shape_tuple(ndim, shape)}{each} is beyond the "
                "address space (2**63 bytes)")
    return 0


cdef int check_axes(Py_ssize_t ndim) except -1:
    """Raise ValueError for more axes than an array may have."""
    if ndim > MAXDIMS:
        raise ValueError(
            f"the result would have {ndim} axes; an array has at most {MAXDIMS}")
    return 0


cdef int check_reach(int ndim, const Py_ssize_t *shape, const Py_ssize_t *strides,
                     Py_ssize_t itemsize) except -1:
    """Raise ValueError if byte offsets computed from foreign strides would overflow.

    Views of a checked array stay within its bounds, and need no check. The step of an
    axis of one element can be any number: it is never used.
    """
    cdef Py_ssize_t low = 0, high = itemsize, length = 0
    cdef int axis
    cdef bint beyond = False
    for axis in range(ndim):
        if shape[axis] == 0:
            return 0
    for axis in range(ndim):
        # The whole length, not one less: walks step past the last element.
        beyond = beyond or shape[axis] > 1 and (
            ndx_multiply(shape[axis], strides[axis], &length)
            or (ndx_add(low, length, &low) if length < 0
                else ndx_add(high, length, &high)))
    if beyond or ndx_multiply(low, -1, &low) or ndx_add(high, low, &high):
        raise ValueError(
            f"an array of shape {shape_tuple(ndim, shape)} with strides "
            f"{shape_tuple(ndim, strides)} reaches beyond the address space "
            "(2**63 bytes)")
    return 0


cdef void fill_c_strides(int ndim, const Py_ssize_t *shape, Py_ssize_t itemsize,
                         Py_ssize_t *strides) noexcept nogil:
    cdef Py_ssize_t step = itemsize
    cdef int axis
    for axis in range(ndim - 1, -1, -1):
        strides[axis] = step
        if shape[axis] > 1:
            step *= shape[axis]


cdef bint is_c_contiguous(int ndim, const Py_ssize_t *shape,
                          const Py_ssize_t *strides,
                          Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t step = itemsize
    cdef int axis
    cdef bint contiguous = True
    for axis in range(ndim - 1, -1, -1):
        if shape[axis] == 0:
            return True
        if shape[axis] != 1:
            if strides[axis] != step:
                contiguous = False
            step *= shape[axis]
    return contiguous


cdef bint is_f_contiguous(int ndim, const Py_ssize_t *shape,
                          const Py_ssize_t *strides,
                          Py_ssize_t itemsize) noexcept nogil:
    cdef Py_ssize_t step = itemsize
    cdef int axis
    cdef bint contiguous = True
    for axis in range(ndim):
        if shape[axis] == 0:
            return True
        if shape[axis] != 1:
            if strides[axis] != step:
                contiguous = False
            step *= shape[axis]
    return contiguous


cdef void byte_bounds(const Strided *x, Py_ssize_t itemsize,
                      Py_ssize_t *low, Py_ssize_t *high) noexcept nogil:
    """Set the range of bytes that `x` touches, relative to its first element."""
    cdef int axis
    low[0] = 0
    high[0] = itemsize
    for axis in range(x.ndim):
        if x.shape[axis] == 0:
            low[0] = 0
            high[0] = 0
            return
        if x.strides[axis] < 0:
            low[0] += (x.shape[axis] - 1) * x.strides[axis]
        else:
            high[0] += (x.shape[axis] - 1) * x.strides[axis]


cdef int broadcast_into(int ndim, Py_ssize_t *shape, int other_ndim,
                        const Py_ssize_t *other) noexcept nogil:
    """Broadcast `shape` with `other`, in place; return the new ndim, -1 on mismatch."""
    cdef int axis, shift = other_ndim - ndim
    if shift > 0:
        for axis in range(ndim - 1, -1, -1):
            shape[axis + shift] = shape[axis]
        for axis in range(shift):
            shape[axis] = 1
        ndim = other_ndim
    shift = ndim - other_ndim
    for axis in range(other_ndim):
        if shape[axis + shift] == 1:
            shape[axis + shift] = other[axis]
        elif other[axis] != 1 and other[axis] != shape[axis + shift]:
            return -1
    return ndim


cdef void broadcast_strides(const Strided *x, int ndim, const Py_ssize_t *shape,
                            Py_ssize_t *strides) noexcept nogil:
    """Fill the strides that `x` has when it is broadcast to `shape`."""
    cdef int axis, shift = ndim - x.ndim
    for axis in range(shift):
        strides[axis] = 0
    for axis in range(x.ndim):
        if x.shape[axis] == 1 and shape[axis + shift] != 1:
            strides[axis + shift] = 0
        else:
            strides[axis + shift] = x.strides[axis]


cdef bint reshape_strides(const Strided *x, Py_ssize_t itemsize, int ndim,
                          const Py_ssize_t *shape, Py_ssize_t *strides) noexcept nogil:
    """Fill the strides of a view of `x` with another shape of equal size.

    Returns False if the reshape needs a copy. Runs of old axes are matched with runs
    of new axes that have the same number of elements. A run can be split anew if it is
    contiguous in itself.
    """
    cdef Py_ssize_t old_shape[MAXDIMS]
    cdef Py_ssize_t old_strides[MAXDIMS]
    cdef int old_ndim = 0, axis, i = 0, j = 0, next_i, next_j, k
    cdef Py_ssize_t old_count, new_count
    for axis in range(x.ndim):
        if x.shape[axis] == 0:
            fill_c_strides(ndim, shape, itemsize, strides)
            return True
        if x.shape[axis] != 1:
            old_shape[old_ndim] = x.shape[axis]
            old_strides[old_ndim] = x.strides[axis]
            old_ndim += 1
    while i < old_ndim and j < ndim:
        next_i = i + 1
        next_j = j + 1
        old_count = old_shape[i]
        new_count = shape[j]
        while old_count != new_count:
            if new_count < old_count:
                new_count *= shape[next_j]
                next_j += 1
            else:
                old_count *= old_shape[next_i]
                next_i += 1
        for k in range(i, next_i - 1):
            if old_strides[k] != old_shape[k + 1] * old_strides[k + 1]:
                return False
        strides[next_j - 1] = old_strides[next_i - 1]
        for k in range(next_j - 1, j, -1):
            strides[k - 1] = strides[k] * shape[k]
        i = next_i
        j = next_j
    # All remaining axes of the new shape have length 1.
    for k in range(j, ndim):
        strides[k] = itemsize if k == 0 else strides[k - 1]
    return True


cdef void order_axes(int ndim, const Py_ssize_t *shape, int nops,
                     StrideRow *strides, bint agree,
                     int *order) noexcept nogil:
    """Order the axes of operands by their strides, largest first.

    The last operand decides first, then the others in turn. With `agree`, an axis comes
    before an earlier one only if no operand is against it: a result that is laid out in
    this order is walked sequentially together with the operands (NumPy's order 'K').
    Ties keep the C order; axes of length 1 and strides of 0 are ignored.
    """
    cdef int axis, other, op, i, place, verdict
    cdef Py_ssize_t a, b
    for axis in range(ndim):
        place = axis
        for i in range(axis - 1, -1, -1):
            other = order[i]
            # 1: `axis` belongs before `other`; -1: after it; 0: undecided.
            verdict = 0
            if shape[axis] != 1 and shape[other] != 1:
                for op in range(nops - 1, -1, -1):
                    a = magnitude(strides[op][other])
                    b = magnitude(strides[op][axis])
                    if a == b or a == 0 or b == 0:
                        continue
                    verdict = 1 if a < b else -1
                    if verdict < 0 or not agree:
                        break
            if verdict == 1:
                place = i
            elif verdict == -1:
                break
        for i in range(axis, place, -1):
            order[i] = order[i - 1]
        order[place] = axis


cdef void sort_axes(int ndim, Py_ssize_t *shape, int nops,
                    StrideRow *strides) noexcept nogil:
    """Sort the axes of operands, those with the largest strides outermost.

    The last operand (the result) decides first, then the others in turn.
    """
    cdef int order[MAXDIMS]
    cdef Py_ssize_t kept[MAXDIMS]
    cdef Py_ssize_t *row
    cdef int axis, op, first = 0
    order_axes(ndim, shape, nops, strides, False, order)
    while first < ndim and order[first] == first:
        first += 1
    if first == ndim:
        return
    for op in range(-1, nops):
        row = shape if op < 0 else strides[op]
        for axis in range(first, ndim):
            kept[axis] = row[axis]
        for axis in range(first, ndim):
            row[axis] = kept[order[axis]]


cdef int merge_axes(int ndim, Py_ssize_t *shape, int nops,
                    StrideRow *strides) noexcept nogil:
    """Drop axes of length 1, and merge neighbours if all operands' strides allow it.

    Return the number of axes that are left.
    """
    cdef int axis, op, last = -1
    cdef bint merge
    for axis in range(ndim):
        if shape[axis] == 1:
            continue
        merge = last >= 0
        if merge:
            for op in range(nops):
                if strides[op][last] != strides[op][axis] * shape[axis]:
                    merge = False
                    break
        if merge:
            shape[last] *= shape[axis]
        else:
            last += 1
            shape[last] = shape[axis]
        for op in range(nops):
            strides[op][last] = strides[op][axis]
    return last + 1


cdef void walk_order(Walk *walk) noexcept nogil:
    """Sort the axes of a walk, those with the largest strides outermost."""
    sort_axes(walk.ndim, walk.shape, walk.nops, walk.strides)


cdef void walk_merge(Walk *walk) noexcept nogil:
    """Drop axes of length 1, and merge neighbours if all operands' strides allow it."""
    walk.ndim = merge_axes(walk.ndim, walk.shape, walk.nops, walk.strides)


cdef tuple shape_tuple(int ndim, const Py_ssize_t *shape):
    cdef tuple result = PyTuple_New(ndim)
    cdef object length
    cdef int axis
    for axis in range(ndim):
        length = shape[axis]
        Py_INCREF(length)
        PyTuple_SET_ITEM(result, axis, length)
    return result


cdef int parse_shape(object shape, Py_ssize_t *out) except -1:
    """Read a shape (an int or a sequence of ints); return its number of axes."""
    cdef Py_ssize_t i, ndim
    cdef tuple lengths
    cdef int overflow = 0
    if PyLong_CheckExact(shape):
        out[0] = int_value(shape, &overflow)
        if overflow:
            out[0] = as_length(shape, shape)
        return 1
    if not isinstance(shape, (tuple, list)):
        try:
            length = index(shape)
            out[0] = as_length(None if isinstance(shape, bool) else length, shape)
            return 1
        except TypeError:
            pass
    # Copied first: reading a length may run user code, which may change the list.
    lengths = items_of(shape, "shape")
    ndim = len(lengths)
    if ndim > MAXDIMS:
        raise ValueError(
            f"shape has {ndim} axes; an array has at most {MAXDIMS}")
    for i in range(ndim):
        out[i] = as_length(lengths[i], lengths)
    return <int>ndim


cdef tuple items_of(object items, str what):
    """Return a sequence's items; an iterator yields at most one more than allowed."""
    if isinstance(items, (tuple, list)):
        return tuple(items)
    try:
        return tuple(islice(items, MAXDIMS + 1))
    except TypeError:
        raise TypeError(
            f"{what} must be an int or a sequence of ints, not {type(items).__name__}"
        ) from None


cdef Py_ssize_t as_length(object value, object shape) except? -1:
    cdef int overflow = 0
    cdef Py_ssize_t length
    if PyLong_CheckExact(value):
        length = int_value(value, &overflow)
        if not overflow:
            return length
    try:
        # A bool would be a length in Python, and is not one in NumPy.
        return PyNumber_AsSsize_t(
            None if isinstance(value, bool) else value, PyExc_OverflowError)
    except TypeError:
        raise TypeError(
            f"shape {shown(shape)} has a length of type {type(value).__name__}; "
            "lengths are ints") from None
    except OverflowError:
        raise ValueError(
            f"shape {shown(shape)} is beyond the address space (2**63 bytes)"
        ) from None


cdef str shown(object value):
    """Return the text of an int or a tuple, also if Python refuses to print it."""
    try:
        return repr(value)
    except ValueError:
        return f"of an int of more than {sys.get_int_max_str_digits()} digits"


cdef int normalize_axis(object axis, int ndim) except -1:
    """Return `axis` counted from the front, or raise."""
    cdef Py_ssize_t value
    try:
        value = PyNumber_AsSsize_t(axis, PyExc_IndexError)
    except IndexError:
        value = PY_SSIZE_T_MAX
    except TypeError:
        raise TypeError(
            f"axis must be an int, not {type(axis).__name__}") from None
    if value < -ndim or value >= ndim:
        raise axis_error(axis, ndim)
    return <int>(value + ndim if value < 0 else value)


cdef object axis_error(object axis, int ndim):
    # A ValueError and an IndexError: callers of NumPy's functions catch either.
    if ndim == 0:
        return AxisError(f"axis {shown(axis)} is out of range: the array has no axes")
    return AxisError(
        f"axis {shown(axis)} is out of range for an array of {ndim} "
        f"{'axis' if ndim == 1 else 'axes'}; valid are {-ndim} to {ndim - 1}")


cdef Py_ssize_t read_int(object value, str what) except? -1:
    """Return an int, clipped to Py_ssize_t; `what` names it in the error."""
    try:
        return PyNumber_AsSsize_t(value, NULL)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None


cdef object read_axes(object axis):
    """Return an argument `axis` as None, an int or a tuple of ints.

    Callers that need it more than once call this once: reading may run user code.
    """
    if axis is None or PyLong_CheckExact(axis):
        return axis
    if isinstance(axis, (tuple, list)):
        # Copied first: `__index__` may change the list.
        return tuple([as_axis(item, "an int") for item in tuple(axis)])
    return as_axis(axis, "an int or a tuple of ints")


cdef object as_axis(object axis, str wanted):
    """Return an axis as an int; `wanted` says in the error what an axis may be."""
    try:
        # A bool would be an axis in Python, and is not one in NumPy.
        return index(
            None if isinstance(axis, bool) or is_numpy_bool(axis) else axis)
    except TypeError:
        raise TypeError(f"axis must be {wanted}, not {type(axis).__name__}") from None


cdef object normalize_axes(object axis, int ndim):
    """Return an argument `axis` as None or a sorted tuple of ints from 0."""
    cdef bint chosen[MAXDIMS]
    parse_axes(axis, ndim, chosen)
    return None if axis is None else tuple([i for i in range(ndim) if chosen[i]])


cdef int parse_axes(object axis, int ndim, bint *chosen) except -1:
    """Mark the chosen axes (None: all) in an array of `ndim` flags."""
    cdef int i
    for i in range(ndim):
        chosen[i] = axis is None
    if axis is None:
        return 0
    axis = read_axes(axis)
    if PyLong_CheckExact(axis):
        chosen[normalize_axis(axis, ndim)] = True
        return 0
    for item in axis:
        i = normalize_axis(item, ndim)
        if chosen[i]:
            raise ValueError(f"axis {item} is named twice in {axis}")
        chosen[i] = True
    return 0

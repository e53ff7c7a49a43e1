"""Creation functions of the standard: filled arrays, matrices and grids, ranges."""

from libc.math cimport ceil as ceil_of
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from math import ceil, inf

import numpy as np

from ndx._array.dispatch cimport answer, engine_of
from ndx._array.pinning cimport Compute, Operands, compute_on, put
from ndx._array.storage cimport (
    BaseArray, new_array, new_empty, new_like, new_view, set_layout,
)
from ndx._compute.copies cimport cast, copy, copy_into, fill
from ndx._compute.costs cimport LARGE
from ndx._compute.elementwise cimport as_operand, binary, is_scalar
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.numpy_calls cimport argument
from ndx._compute.numpy_results cimport call_numpy, own_result
from ndx._context.context cimport device_of_new
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX128, FLOAT64, INT64, KIND_COMPLEX, KIND_UINT, UINT64, dtype_code,
    dtype_object, itemsize_of, kind_of,
)
from ndx._lib.integers cimport int_value
from ndx._lib.layout cimport (
    MAXDIMS, Walk, check_axes, parse_shape, read_int, shape_tuple,
)
from ndx._methods.values cimport is_integer

from ndx._compute.numpy_calls import as_int, on_device
from ndx._lib.device import CPU, device_of, find_device, number_of
from ndx._methods.exact import integers_between, require_integers

__all__ = [
    "arange", "empty", "empty_like", "eye", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like",
]


# ---- filled arrays -------------------------------------------------------------------

def empty(shape: Shape, *, dtype: DTypeLike = None,
          device: DeviceLike = None) -> NDArray:
    """Return a new array whose elements are not set.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Raises
    ------
    ValueError
        If a length is negative, the array exceeds the address space, or there is no
        such device.
    OutOfMemoryError
        If the backend can't provide the memory.

    Notes
    -----
    Array API 2025.12, `empty`.

    Examples
    --------
    >>> import ndx
    >>> ndx.empty((2, 3)).shape
    (2, 3)
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths)
    cdef int code = FLOAT64 if dtype is None else dtype_code(dtype)
    return new_array(device_of_new(device), code, ndim, lengths, NULL, False)


def zeros(shape: Shape, *, dtype: DTypeLike = None,
          device: DeviceLike = None) -> NDArray:
    """Return a new array of zeros.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `zeros`. Raises as `empty` does.

    Examples
    --------
    >>> import ndx
    >>> ndx.zeros(3)
    NDArray([0., 0., 0.])
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths)
    cdef int code = FLOAT64 if dtype is None else dtype_code(dtype)
    return new_array(device_of_new(device), code, ndim, lengths, NULL, True)


def ones(shape: Shape, *, dtype: DTypeLike = None,
         device: DeviceLike = None) -> NDArray:
    """Return a new array of ones.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `ones`. Raises as `empty` does.

    Examples
    --------
    >>> import ndx
    >>> ndx.ones((2, 2))
    NDArray([[1., 1.],
             [1., 1.]])
    """
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device)


def full(shape: Shape, fill_value: Scalar, *, dtype: DTypeLike = None,
         device: DeviceLike = None) -> NDArray:
    """Return a new array filled with one value.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    fill_value : bool, int, float or complex
        The value of every element.
    dtype : dtype, optional
        Default: the default dtype of the value's kind.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Raises
    ------
    TypeError
        If the dtype has no values of this kind: 1.5 for integers.
    OverflowError
        If an integer does not fit the dtype.

    Notes
    -----
    Array API 2025.12, `full`. Raises as `empty` does, too.

    Examples
    --------
    >>> import ndx
    >>> ndx.full(3, 7)
    NDArray([7, 7, 7])
    """
    cdef Py_ssize_t lengths[MAXDIMS]
    cdef int ndim = parse_shape(shape, lengths), where = device_of_new(device), code
    cdef BaseArray x, value
    if not is_scalar(fill_value):
        value = as_operand(fill_value)
        if value is None or value.ndim:
            raise TypeError(
                f"fill_value must be a scalar, not {type(fill_value).__name__}")
        if dtype is None:
            dtype = dtype_object(value.dtype)
        fill_value = (<object>value).item()
    code = scalar_default(fill_value) if dtype is None else dtype_code(dtype)
    x = new_array(where, code, ndim, lengths, NULL, False)
    fill_checked(x, fill_value)
    return x


cdef int check_fill(int dtype, object value) except -1:
    """Raise TypeError for a value that has no meaning in a dtype."""
    if BOOL < dtype and (
            kind_of[dtype] < KIND_COMPLEX and isinstance(value, complex)
            or kind_of[dtype] <= KIND_UINT and isinstance(value, float)):
        raise TypeError(
            f"a Python {type(value).__name__} has no place in an array of dtype "
            f"{dtype_object(dtype)}")
    return 0


cdef int fill_checked(BaseArray x, object value) except -1:
    """Fill an array; raise TypeError for a value that has no meaning in its dtype."""
    check_fill(x.dtype, value)
    return fill(x, value)


cdef int scalar_default(object value) noexcept:
    """Return the default dtype for a Python scalar's kind."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return INT64
    return FLOAT64 if isinstance(value, float) else COMPLEX128


def empty_like(x: Array, /, *, dtype: DTypeLike = None,
               device: DeviceLike = None) -> NDArray:
    """Return a new array of the shape of `x` whose elements are not set.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `empty_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.empty_like(ndx.zeros((2, 3))).shape
    (2, 3)
    """
    cdef BaseArray like = argument(x, "empty_like")
    cdef int code = like.dtype if dtype is None else dtype_code(dtype)
    cdef int where = like.block.device
    if device is not None:
        where = number_of(find_device(device))
    if where != like.block.device:
        return new_array(where, code, like.ndim, like.shape, NULL, False)
    return new_like(like, code)


def full_like(x: Array, /, fill_value: Scalar, *, dtype: DTypeLike = None,
              device: DeviceLike = None) -> NDArray:
    """Return a new array of the shape of `x`, filled with one value.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    fill_value : bool, int, float or complex
        The value of every element.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `full_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.full_like(ndx.zeros(2), 3)
    NDArray([3., 3.])
    """
    result = empty_like(x, dtype=dtype, device=device)
    fill_checked(result, fill_value)
    return result


def zeros_like(x: Array, /, *, dtype: DTypeLike = None,
               device: DeviceLike = None) -> NDArray:
    """Return a new array of zeros of the shape of `x`.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `zeros_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.zeros_like(ndx.ones(2))
    NDArray([0., 0.])
    """
    return full_like(x, 0, dtype=dtype, device=device)


def ones_like(x: Array, /, *, dtype: DTypeLike = None,
              device: DeviceLike = None) -> NDArray:
    """Return a new array of ones of the shape of `x`.

    Parameters
    ----------
    x : NDArray
        Gives the shape, the layout in memory and, by default, the dtype.
    dtype : dtype, optional
        Default: that of `x`.
    device : Device or str, optional
        Default: that of `x`.

    Returns
    -------
    NDArray
        In the current workspace, or in memory of the current backend.

    Notes
    -----
    Array API 2025.12, `ones_like`.

    Examples
    --------
    >>> import ndx
    >>> ndx.ones_like(ndx.zeros(2))
    NDArray([1., 1.])
    """
    return full_like(x, 1, dtype=dtype, device=device)


def placed(x, device):
    """Return an array of the CPU on the device that ``device=`` names, copied there.

    Computing on the CPU makes the values bit-identical on all devices.
    """
    cdef int where = device_of_new(device)
    if not where:
        return x
    engine = engine_of(where)
    return answer(engine, "upload", engine.upload(x, device_of(where)))


# ---- matrices and grids --------------------------------------------------------------

def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0,
        dtype: DTypeLike = None, device: DeviceLike = None) -> NDArray:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_cols : int, optional
        Number of columns. Default: `n_rows`.
    k : int
        The diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (n_rows, n_cols)

    Notes
    -----
    Array API 2025.12, `eye`.

    Examples
    --------
    >>> import ndx
    >>> ndx.eye(2)
    NDArray([[1., 0.],
             [0., 1.]])
    """
    n_rows = as_int(n_rows, "n_rows")
    x = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype,
              device=CPU)
    k = as_int(k, "k")
    if -(<BaseArray>x).shape[0] < k < (<BaseArray>x).shape[1]:
        fill(diagonal_of(x, k), 1)
    return placed(x, device)


cdef BaseArray diagonal_of(BaseArray x, Py_ssize_t k):
    """Return a view of a diagonal of a matrix that has it."""
    cdef BaseArray view = new_view(x, 1)
    cdef Py_ssize_t rows = x.shape[0] + (k if k < 0 else 0)
    view.shape[0] = min(rows, x.shape[1] - (k if k > 0 else 0))
    view.strides[0] = x.strides[0] + x.strides[1]
    view.offset += k * x.strides[1] if k > 0 else -k * x.strides[0]
    set_layout(view)
    return view


def meshgrid(*arrays: Array,
             indexing: Literal["xy", "ij"] = "xy") -> tuple[NDArray, ...]:
    """Return the coordinates of the points of a grid, from those along its axes.

    Parameters
    ----------
    *arrays : NDArray, shape (N1,), (N2,), ...
        Coordinates along each axis.
    indexing : {'xy', 'ij'}
        ``'ij'``: results of shape (N1, N2, N3, ...). ``'xy'``: with the first two axes
        swapped, (N2, N1, N3, ...).

    Returns
    -------
    tuple of NDArray
        One new array for each argument, of its dtype.

    Raises
    ------
    ValueError
        If an array has not exactly one axis, there are more than 64 arrays (the limit
        of axes), or `indexing` is unknown.

    Notes
    -----
    Array API 2025.12, `meshgrid`.

    Examples
    --------
    >>> import ndx
    >>> x, y = ndx.meshgrid(ndx.asarray([1, 2]), ndx.asarray([3, 4]))
    >>> x
    NDArray([[1, 2],
             [1, 2]])
    """
    cdef list found = [argument(x, "meshgrid") for x in arrays]
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int ndim, i, axis
    cdef BaseArray view
    cdef list axes, grids = []
    check_axes(len(found))
    ndim = <int>len(found)
    axes = list(range(ndim))
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing={indexing!r} is unknown; valid are 'xy' and 'ij'")
    if indexing == "xy" and ndim > 1:
        axes[:2] = [1, 0]
    for i in range(ndim):
        view = found[i]
        if view.ndim != 1:
            raise ValueError(
                f"meshgrid takes arrays of one axis; argument {i} has shape "
                f"{shape_tuple(view.ndim, view.shape)}")
        shape[<int>axes[i]] = view.shape[0]
    for i in range(ndim):
        view = new_view(<BaseArray>found[i], ndim)
        for axis in range(ndim):
            view.shape[axis] = shape[axis]
            view.strides[axis] = 0
        view.strides[<int>axes[i]] = (<BaseArray>found[i]).strides[0]
        set_layout(view)
        grids.append(copy(view))
    return tuple(grids)


def tril(x: Array, /, *, k: int = 0) -> NDArray:
    """Return the lower triangle of each matrix in a stack, with zeros elsewhere.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The last diagonal kept: 0 is the main one, positive ones are above it.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `tril`.

    Examples
    --------
    >>> import ndx
    >>> ndx.tril(ndx.ones((2, 2)))
    NDArray([[1., 0.],
             [1., 1.]])
    """
    return triangle(argument(x, "tril"), read_int(k, "k"), True, "tril")


def triu(x: Array, /, *, k: int = 0) -> NDArray:
    """Return the upper triangle of each matrix in a stack, with zeros elsewhere.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The first diagonal kept: 0 is the main one, positive ones are above it.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `triu`.

    Examples
    --------
    >>> import ndx
    >>> ndx.triu(ndx.ones((2, 2)))
    NDArray([[1., 1.],
             [0., 1.]])
    """
    return triangle(argument(x, "triu"), read_int(k, "k"), False, "triu")


cdef BaseArray triangle(BaseArray x, Py_ssize_t k, bint lower, str name):
    cdef BaseArray result
    cdef Operands operands
    cdef Triangle triangle
    if x.ndim < 2:
        raise ValueError(
            f"{name} is for arrays of 2 axes or more, this one has {x.ndim}")
    if x.block.device:
        return on_device(name, x, k=k)
    result = new_empty(x.dtype, x.ndim, x.shape)
    copy_into(result, x)
    if result.size == 0:
        return result
    triangle.rows = x.shape[x.ndim - 2]
    triangle.columns = x.shape[x.ndim - 1]
    triangle.count = result.size // triangle.columns
    triangle.itemsize = itemsize_of[x.dtype]
    triangle.lower = lower
    # All diagonals beyond the corners are alike. The bounds keep sums from overflowing.
    triangle.diagonal = max(-triangle.rows - 1, min(k, triangle.columns + 1))
    operands.count = 0
    put(&operands, result)
    compute_on(&operands, NULL, clear_triangle, &triangle, result.size >= LARGE)
    return result


# The elements of contiguous matrices that become 0.
cdef struct Triangle:
    Py_ssize_t rows              # of one matrix
    Py_ssize_t columns
    Py_ssize_t count             # rows of all matrices
    Py_ssize_t diagonal
    Py_ssize_t itemsize
    bint lower                   # the lower triangle is kept


cdef void clear_triangle(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Triangle *of = <const Triangle *>arg
    cdef Py_ssize_t row, first, stop
    for row in range(of.count):
        first = row % of.rows + of.diagonal + of.lower
        first = max(<Py_ssize_t>0, min(first, of.columns))
        stop = of.columns
        if not of.lower:
            stop = first
            first = 0
        memset(data[0] + (row * of.columns + first) * of.itemsize, 0,
               (stop - first) * of.itemsize)


# ---- ranges --------------------------------------------------------------------------

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef Ufunc ADD = find_ufunc("add")
cdef object INT64_LIMIT = 2**63
# So many integers are spaced in arithmetic modulo 2**64.
cdef object MOST_WHOLE = 2**31

cdef extern from *:
    """
    /* Of numbers below, sums and differences are exact, as ints and as floats. */
    #define NDX_MODERATE ((int64_t)1 << 50)
    """
    const int64_t MODERATE "NDX_MODERATE"


def arange(start: float, /, stop: float | None = None, step: float = 1, *,
           dtype: DTypeLike = None, device: DeviceLike = None) -> NDArray:
    """Return evenly spaced numbers of the half-open interval ``[start, stop)``.

    Parameters
    ----------
    start : int or float
        The first number. If `stop` is None, the end of an interval that starts at 0.
    stop : int or float, optional
        End of the interval.
    step : int or float
        Distance between neighbours, not 0.
    dtype : dtype, optional
        Default: int64 if all of the numbers are ints, else float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (ceil((stop - start) / step),)

    Raises
    ------
    OverflowError
        If a number does not fit the dtype: 2**63 needs ``dtype="uint64"``.

    Notes
    -----
    Array API 2025.12, `arange`.

    Examples
    --------
    >>> import ndx
    >>> ndx.arange(1, 7, 2)
    NDArray([1, 3, 5])
    """
    cdef BaseArray result
    cdef int code
    if dtype is None and device is None and device_of_new(None) == 0:
        result = plain_range(start, stop, step)
        if result is not None:
            return result
    if stop is None:
        start, stop = 0, start
    start, stop, step = [number(value, "arange") for value in (start, stop, step)]
    if step == 0:
        raise ValueError("step must not be 0")
    whole = all([isinstance(value, int) for value in (start, stop, step)])
    code = dtype_code(dtype) if dtype is not None else INT64 if whole else FLOAT64
    length = -((start - stop) // step) if whole else (stop - start) / step
    if not -inf < length < PY_SSIZE_T_MAX:
        raise ValueError(
            f"arange({start}, {stop}, {step}) has {length} elements, which is beyond "
            "the address space")
    length = max(0, ceil(length))
    if length and is_integer(code):
        require_integers(dtype_object(code), start, start + (length - 1) * step)
    if not whole:
        result = float_steps(start, length, step)
    elif start < INT64_LIMIT and stop <= INT64_LIMIT:
        result = integer_steps(start, length, step)
    else:
        # Values in the upper half of uint64.
        result = binary(ADD, cast(integer_steps(0, length, step), UINT64), start, None)
    return placed(result if result.dtype == code else cast(result, code), device)


cdef bint is_moderate(object value) except -1:
    """Whether a number of Python's own types is far from where arithmetic overflows."""
    cdef int64_t number
    cdef int overflow = 0
    if type(value) is int:
        number = int_value(value, &overflow)
        return not overflow and -MODERATE < number < MODERATE
    # Not for NaN.
    return type(value) is float and -MODERATE < <double>value < MODERATE


cdef BaseArray plain_range(object start, object stop, object step):
    """Return a range of moderate numbers on the CPU; None for all others."""
    cdef int64_t first, last, distance
    cdef double length
    if stop is None:
        start, stop = 0, start
    if not (is_moderate(start) and is_moderate(stop) and is_moderate(step)):
        return None
    if type(start) is int and type(stop) is int and type(step) is int:
        first, last, distance = start, stop, step
        if distance == 0:
            return None
        if (last <= first) if distance > 0 else (last >= first):
            return integer_steps(first, 0, distance)
        return integer_steps(
            first, (last - first + distance + (-1 if distance > 0 else 1)) // distance,
            distance)
    if step == 0:
        return None
    length = ceil_of((<double>stop - <double>start) / <double>step)
    if not length < MODERATE:
        return None
    return float_steps(start, <Py_ssize_t>max(0.0, length), step)


cdef object number(object value, str name):
    """Return a Python int, a float or, for `linspace`, a complex number.

    The result is never of a subclass, so that arithmetic on it runs no user code.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if name == "arange" and isinstance(value, complex) or not is_scalar(value):
        also = "" if name == "arange" else ", and complex ones"
        raise TypeError(
            f"{name} takes ints and floats{also}, not {type(value).__name__}")
    if isinstance(value, int):
        return as_int(value, "a number")
    return float.__pos__(value) if isinstance(value, float) else complex.__pos__(value)


# Evenly spaced numbers: the first, and the distance between neighbours.
cdef struct Spacing:
    Py_ssize_t count
    int64_t start
    int64_t distance
    double float_start
    double float_distance


cdef BaseArray evenly_spaced(int dtype, Spacing *spacing, Compute write):
    """Return a new array whose elements the function `write` sets."""
    cdef BaseArray x = new_empty(dtype, 1, &spacing.count)
    cdef Operands operands
    operands.count = 0
    put(&operands, x)
    compute_on(&operands, NULL, write, spacing, spacing.count >= LARGE)
    return x


cdef BaseArray integer_steps(int64_t start, Py_ssize_t count, object step):
    """Return ``start + i * step`` for i below `count`; all values must fit int64."""
    cdef Spacing spacing
    spacing.count = count
    spacing.start = start
    spacing.distance = step if count > 1 else 0
    return evenly_spaced(INT64, &spacing, write_integers)


cdef void write_integers(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Spacing *spacing = <const Spacing *>arg
    cdef uint64_t *out = <uint64_t *>data[0]
    cdef uint64_t value = spacing.start, distance = spacing.distance
    cdef Py_ssize_t i, count = spacing.count
    # Additions vectorise on all CPUs, multiplications of 64 bits do not.
    for i in range(count):
        out[i] = value
        value += distance


cdef BaseArray float_steps(double start, Py_ssize_t count, double step):
    cdef Spacing spacing
    spacing.count = count
    spacing.float_start = start
    spacing.float_distance = step
    return evenly_spaced(FLOAT64, &spacing, write_floats)


cdef void write_floats(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Spacing *spacing = <const Spacing *>arg
    cdef double *out = <double *>data[0]
    cdef double start = spacing.float_start, distance = spacing.float_distance, first
    cdef Py_ssize_t done = 0
    cdef int i, n
    while done < spacing.count:
        # Conversions from 32 bits vectorise on all CPUs; the sum is exact.
        n = <int>min(spacing.count - done, 1 << 20)
        first = <double>done
        for i in range(n):
            out[i] = start + (first + <double>i) * distance
        out += n
        done += n


def linspace(start: complex, stop: complex, /, num: int, *, dtype: DTypeLike = None,
             device: DeviceLike = None, endpoint: bool = True) -> NDArray:
    """Return evenly spaced numbers over an interval.

    Parameters
    ----------
    start, stop : int, float or complex
        Ends of the interval.
    num : int
        Number of values, 0 or more.
    dtype : dtype, optional
        Default: float64, or complex128 for complex ends. Integers between integers are
        the exact values, rounded down.
    device : Device or str, optional
        Default: ``"cpu"``.
    endpoint : bool
        Whether `stop` is the last value.

    Returns
    -------
    NDArray, shape (num,)

    Notes
    -----
    Array API 2025.12, `linspace`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linspace(0.0, 1.0, 3)
    NDArray([0. , 0.5, 1. ])
    """
    cdef BaseArray x
    cdef int code
    num = as_int(num, "num")
    if num < 0:
        raise ValueError(f"num={num} is negative; it is 0 or more")
    if num > PY_SSIZE_T_MAX:
        raise ValueError(
            f"linspace: num={num} numbers are beyond the address space (2**63 bytes)")
    start, stop = number(start, "linspace"), number(stop, "linspace")
    complex_ends = isinstance(start, complex) or isinstance(stop, complex)
    code = -1 if dtype is None else dtype_code(dtype)
    if is_integer(code) and not complex_ends and num:
        if isinstance(start, int) and isinstance(stop, int) and num < MOST_WHOLE:
            return placed(own_result(call_numpy(
                integers_between, (start, stop, num, endpoint, dtype_object(code)),
                {})), device)
        require_integers(dtype_object(code), start, stop)
    parts = max(num - 1 if endpoint else num, 1)
    x = float_steps(0, num, 1)
    if complex_ends:
        x = cast(x, COMPLEX128)
    # The step may underflow to 0 although the ends differ.
    step = (stop - start) / parts
    if step:
        x *= step
    else:
        x *= stop - start
        x /= parts
    x += start
    if endpoint and num > 1:
        x[num - 1] = stop
    if code < 0:
        code = x.dtype
    return placed(x if code == x.dtype else cast(x, code), device)

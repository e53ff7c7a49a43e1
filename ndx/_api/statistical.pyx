"""Reductions of the standard."""

from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.accumulating cimport accumulate_lines
from ndx._compute.copies cimport cast, fill, require_castable
from ndx._compute.elementwise cimport inplace, unary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.numpy_calls cimport argument
from ndx._compute.reductions cimport accumulator, reduce, reduce_as, sum_squares
from ndx._lib.dtypes cimport (
    COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, KIND_COMPLEX, KIND_FLOAT, computed_in,
    dtype_code, dtype_object, has_arithmetic, kind_of,
)
from ndx._lib.layout cimport (
    MAXDIMS, normalize_axes, normalize_axis, parse_axes, read_axes,
)

from ndx._compute.numpy_calls import into, on_device

__all__ = [
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum",
    "var",
]

cdef Ufunc ADD = find_ufunc("add")
cdef Ufunc DIVIDE = find_ufunc("divide")
cdef Ufunc MAXIMUM = find_ufunc("maximum")
cdef Ufunc MINIMUM = find_ufunc("minimum")
cdef Ufunc MULTIPLY = find_ufunc("multiply")
cdef Ufunc SQRT = find_ufunc("sqrt")


cdef int total_dtype(int dtype, object wanted) except -1:
    """Return the dtype of a total: the one that is wanted, if any."""
    return accumulator(dtype) if wanted is None else dtype_code(wanted)


cdef BaseArray combine(str name, Ufunc ufunc, BaseArray x, int dtype, object axis,
                       bint keepdims):
    """Reduce an array in a dtype."""
    if not has_arithmetic(dtype):
        # Rounded once.
        return cast(combine(name, ufunc, x, computed_in[dtype], axis, keepdims), dtype)
    if x.block.device:
        require_castable(x.dtype, dtype)
        return on_device(name, x, axis=normalize_axes(axis, x.ndim),
                         dtype=dtype_object(dtype), keepdims=bool(keepdims))
    return reduce_as(name, ufunc, x, dtype, axis, keepdims)


cdef BaseArray extreme(str name, Ufunc ufunc, object x, object axis, bint keepdims):
    """Return the largest or the smallest elements along axes."""
    cdef BaseArray array = argument(x, name)
    if array.block.device:
        return on_device(name, array, axis=normalize_axes(axis, array.ndim),
                         keepdims=bool(keepdims))
    return reduce(ufunc, array, axis, keepdims)


cdef int floating(int dtype) noexcept:
    """Return the dtype that means of a dtype are computed in."""
    return computed_in[dtype] if kind_of[dtype] >= KIND_FLOAT else FLOAT64


cdef inline BaseArray rounded(BaseArray result, int dtype):
    """Return a mean, or the like, in the dtype of the elements if that is of floats."""
    if kind_of[dtype] < KIND_FLOAT or result.dtype == dtype:
        return result
    return cast(result, dtype)


cdef Py_ssize_t reduced_count(BaseArray x, object axis) except -1:
    """Return the number of elements that are reduced to one element of the result."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t count = 1
    cdef int i
    parse_axes(axis, x.ndim, chosen)
    for i in range(x.ndim):
        if chosen[i]:
            count *= x.shape[i]
    return count


def sum(x: Array, /, *, axis: Axes | None = None, dtype: DTypeLike = None,
        keepdims: bool = False) -> NDArray:
    """Return the sum over axes.

    Parameters
    ----------
    x : NDArray
        Bool and numeric dtypes.
    axis : int or tuple of int, optional
        Axes to sum over, each in ``[-x.ndim, x.ndim)``. Default: all.
    dtype : dtype, optional
        Dtype of the sum. Default: that of `x`, except int64 for smaller signed integers
        and bools, and uint64 for smaller unsigned ones.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray
        0 for the sum of no elements.

    Raises
    ------
    ValueError
        If an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `sum`. Floats along contiguous axes are summed pairwise.

    Examples
    --------
    >>> import ndx
    >>> ndx.sum(ndx.asarray([[1, 2], [3, 4]]), axis=0)
    NDArray([4, 6])
    """
    cdef BaseArray array = argument(x, "sum")
    return combine("sum", ADD, array, total_dtype(array.dtype, dtype), axis, keepdims)


def prod(x: Array, /, *, axis: Axes | None = None, dtype: DTypeLike = None,
         keepdims: bool = False) -> NDArray:
    """Return the product over axes.

    Parameters
    ----------
    x : NDArray
        Bool and numeric dtypes.
    axis : int or tuple of int, optional
        Axes to multiply over, each in ``[-x.ndim, x.ndim)``. Default: all.
    dtype : dtype, optional
        Dtype of the product. Default: as for `sum`.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray
        1 for the product of no elements.

    Raises
    ------
    ValueError
        If an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `prod`.

    Examples
    --------
    >>> import ndx
    >>> ndx.prod(ndx.asarray([2.0, 3.0]))
    NDArray(6.)
    """
    cdef BaseArray array = argument(x, "prod")
    return combine(
        "prod", MULTIPLY, array, total_dtype(array.dtype, dtype), axis, keepdims)


def max(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> NDArray:
    """Return the largest element along axes; NaN if there is one.

    Parameters
    ----------
    x : NDArray
        Of any dtype. Complex numbers are compared by their real parts, then by the
        imaginary ones.
    axis : int or tuple of int, optional
        Axes to search, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray

    Raises
    ------
    ValueError
        If there are no elements, or an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `max`.

    Examples
    --------
    >>> import ndx
    >>> ndx.max(ndx.asarray([[1, 5], [3, 4]]), axis=1)
    NDArray([5, 4])
    """
    return extreme("max", MAXIMUM, x, axis, keepdims)


def min(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> NDArray:
    """Return the smallest element along axes; NaN if there is one.

    Parameters
    ----------
    x : NDArray
        Of any dtype. Complex numbers are compared by their real parts, then by the
        imaginary ones.
    axis : int or tuple of int, optional
        Axes to search, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray

    Raises
    ------
    ValueError
        If there are no elements, or an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `min`.

    Examples
    --------
    >>> import ndx
    >>> ndx.min(ndx.asarray([[1, 5], [3, 4]]), axis=1)
    NDArray([1, 3])
    """
    return extreme("min", MINIMUM, x, axis, keepdims)


def mean(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> NDArray:
    """Return the arithmetic mean over axes.

    Parameters
    ----------
    x : NDArray
        Numeric dtypes; integers are averaged in float64.
    axis : int or tuple of int, optional
        Axes to average over, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray
        NaN for the mean of no elements.

    Notes
    -----
    Array API 2025.12, `mean`.

    Examples
    --------
    >>> import ndx
    >>> ndx.mean(ndx.asarray([1.0, 2.0, 6.0]))
    NDArray(3.)
    """
    cdef BaseArray values = argument(x, "mean")
    return rounded(average("mean", values, axis, keepdims), values.dtype)


cdef BaseArray average(str name, BaseArray values, object axis, bint keepdims):
    if values.block.device:
        return on_device("mean", values, axis=normalize_axes(axis, values.ndim),
                         keepdims=bool(keepdims))
    axis = read_axes(axis)
    total = combine(name, ADD, values, floating(values.dtype), axis, keepdims)
    return divided(total, reduced_count(values, axis))


cdef BaseArray divided(BaseArray total, double count):
    """Return a total divided by a count, with a result of the same dtype."""
    cdef int dtype = division_dtype(total.dtype, count)
    if dtype == total.dtype:
        return inplace(DIVIDE, total, count)
    return cast(inplace(DIVIDE, cast(total, dtype), count), total.dtype)


cpdef int division_dtype(int dtype, double count) noexcept:
    """Return the dtype in which a total is divided by a count, as NumPy does.

    NumPy divides by an element of int64 or float64, in double precision. In single
    precision a complex number is rounded twice, and a count may not be exact.
    """
    if dtype == COMPLEX64:
        return COMPLEX128
    return FLOAT64 if dtype == FLOAT32 and <float>count != count else dtype


def var(x: Array, /, *, axis: Axes | None = None, correction: float = 0.0,
        keepdims: bool = False) -> NDArray:
    """Return the variance over axes.

    Parameters
    ----------
    x : NDArray
        Real dtypes; integers are computed in float64.
    axis : int or tuple of int, optional
        Axes to compute over, each in ``[-x.ndim, x.ndim)``. Default: all.
    correction : int or float
        Degrees of freedom to subtract: the sum of squares is divided by
        ``N - correction``.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray
        NaN where ``N - correction`` is not positive.

    Notes
    -----
    Array API 2025.12, `var`. Computed in two passes over the data: the mean, then the
    squared distances from it, which are not kept.

    Examples
    --------
    >>> import ndx
    >>> ndx.var(ndx.asarray([1.0, 2.0, 3.0]), correction=1)
    NDArray(1.)
    """
    cdef BaseArray values = argument(x, "var")
    return rounded(variance("var", values, axis, correction, keepdims), values.dtype)


cdef BaseArray variance(str name, BaseArray values, object axis, object correction,
                        bint keepdims):
    cdef BaseArray center, total
    cdef int dtype = floating(values.dtype)
    cdef double freedom
    if kind_of[dtype] == KIND_COMPLEX:
        raise TypeError(f"{name} takes real dtypes, not complex ones")
    axis = read_axes(axis)
    freedom = reduced_count(values, axis)
    try:
        freedom = freedom - correction
    except TypeError:
        raise TypeError(f"correction must be an int or float, not "
                        f"{type(correction).__name__}") from None
    if values.block.device:
        total = on_device("var", values, axis=normalize_axes(axis, values.ndim),
                          correction=correction, keepdims=bool(keepdims))
        if not freedom > 0:
            fill(total, float("nan"))
        return total
    center = average("var", values, axis, True)
    total = sum_squares(values, center, axis, keepdims)
    return divided(total, freedom if freedom > 0 else float("nan"))


def std(x: Array, /, *, axis: Axes | None = None, correction: float = 0.0,
        keepdims: bool = False) -> NDArray:
    """Return the standard deviation over axes: the square root of `var`.

    Parameters
    ----------
    x : NDArray
        Real dtypes; integers are computed in float64.
    axis : int or tuple of int, optional
        Axes to compute over, each in ``[-x.ndim, x.ndim)``. Default: all.
    correction : int or float
        Degrees of freedom to subtract, as for `var`.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray

    Notes
    -----
    Array API 2025.12, `std`.

    Examples
    --------
    >>> import ndx
    >>> ndx.std(ndx.asarray([1.0, 3.0]))
    NDArray(1.)
    """
    cdef BaseArray values = argument(x, "std")
    cdef BaseArray result = variance("std", values, axis, correction, keepdims)
    return rounded(unary(SQRT, result, result), values.dtype)


cdef object accumulate(Ufunc ufunc, object x, object axis, object dtype,
                       bint include_initial, str name):
    """Return the cumulative results of an operation along an axis."""
    cdef BaseArray array = argument(x, name)
    cdef int code = total_dtype(array.dtype, dtype)
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int which, i
    if not has_arithmetic(code):
        # Each result is rounded once.
        return cast(accumulate(ufunc, array, axis, dtype_object(computed_in[code]),
                               include_initial, name), code)
    if axis is None:
        if array.ndim != 1:
            raise ValueError(f"{name} needs an axis for an array of {array.ndim} axes")
        axis = 0
    which = axis = normalize_axis(axis, array.ndim)
    if array.block.device:
        require_castable(array.dtype, code)
        return on_device(name, array, axis=axis, dtype=dtype_object(code),
                         include_initial=bool(include_initial))
    for i in range(array.ndim):
        shape[i] = array.shape[i]
    shape[which] += include_initial
    result = new_empty(code, array.ndim, shape)
    rest = result
    if include_initial:
        before = (slice(None),) * axis
        (<object>result)[(*before, 0)] = 0 if ufunc is ADD else 1
        rest = (<object>result)[(*before, slice(1, None))]
    if accumulate_lines(name, ufunc, array, rest, which):
        return result
    if array.dtype != code:
        array = cast(array, code)
    into(rest, f"{ufunc.public.__name__}.accumulate", array, axis=axis)
    return result


def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: DTypeLike = None,
                   include_initial: bool = False) -> NDArray:
    """Return the running sums along an axis.

    Parameters
    ----------
    x : NDArray
        Numeric, with one axis or more.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. Optional if `x` has one axis.
    dtype : dtype, optional
        Dtype of the sums. Default: as for `sum`.
    include_initial : bool
        Whether the result starts with 0, and is one longer.

    Returns
    -------
    NDArray

    Raises
    ------
    ValueError
        If the axis is out of range, or missing.

    Notes
    -----
    Array API 2025.12, `cumulative_sum`.

    Examples
    --------
    >>> import ndx
    >>> ndx.cumulative_sum(ndx.asarray([1, 2, 3]), include_initial=True)
    NDArray([0, 1, 3, 6])
    """
    return accumulate(ADD, x, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: DTypeLike = None,
                    include_initial: bool = False) -> NDArray:
    """Return the running products along an axis.

    Parameters
    ----------
    x : NDArray
        Numeric, with one axis or more.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. Optional if `x` has one axis.
    dtype : dtype, optional
        Dtype of the products. Default: as for `sum`.
    include_initial : bool
        Whether the result starts with 1, and is one longer.

    Returns
    -------
    NDArray

    Raises
    ------
    ValueError
        If the axis is out of range, or missing.

    Notes
    -----
    Array API 2025.12, `cumulative_prod`.

    Examples
    --------
    >>> import ndx
    >>> ndx.cumulative_prod(ndx.asarray([1, 2, 3]))
    NDArray([1, 2, 6])
    """
    return accumulate(MULTIPLY, x, axis, dtype, include_initial, "cumulative_prod")

"""Creation functions of the standard that make sequences of numbers."""

from libc.math cimport ceil as ceil_of
from libc.stdint cimport int64_t, uint64_t

from math import ceil, inf

import numpy as np

from ndx._array.pinning cimport Compute, Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport LARGE, cast
from ndx._compute.elementwise cimport binary, is_scalar
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.numpy_results cimport call_numpy, own_result
from ndx._context.placement cimport device_of_new
from ndx._lib.dtypes cimport (
    COMPLEX128, FLOAT64, INT64, UINT64, dtype_code, dtype_object,
)
from ndx._lib.layout cimport Walk
from ndx._methods.values cimport is_integer

from ndx._api.creation import placed
from ndx._compute.numpy_calls import as_int
from ndx._methods.exact import integers_between, require_integers

__all__ = ["arange", "linspace"]

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1

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
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
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

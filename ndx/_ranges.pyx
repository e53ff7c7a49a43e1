"""Creation functions of the standard that make sequences of numbers, and `eye`."""

import math

from libc.stdint cimport uint64_t

import numpy as np

from ndx._array cimport BaseArray, data_of, new_empty, numpy_view
from ndx._dtypes cimport (
    FLOAT64, INT64, KIND_FLOAT, KIND_UINT, UINT64, dtype_code, dtype_object, kind_of,
    store_scalar,
)
from ndx._layout cimport parse_shape
from ndx._numpy_memory cimport call_numpy, own_result
from ndx._operations cimport cast, is_scalar

from ndx._creation import zeros
from ndx._device import as_device

__all__ = ["arange", "eye", "linspace"]


def arange(start, /, stop=None, step=1, *, dtype=None, device=None):
    """Return evenly spaced numbers of the half-open interval ``[start, stop)``.

    Parameters
    ----------
    start : int or float
        The first number; the end of the interval if `stop` is None, which then
        starts at 0.
    stop : int or float, optional
        End of the interval.
    step : int or float
        Distance between neighbours; not 0.
    dtype : dtype, optional
        Default: int64 if all of the numbers are ints, else float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (ceil((stop - start) / step),)

    Notes
    -----
    Array API 2025.12, `arange`.

    Examples
    --------
    >>> import ndx
    >>> ndx.arange(1, 7, 2)
    NDArray([1, 3, 5])
    """
    as_device(device)
    if stop is None:
        start, stop = 0, start
    for value in (start, stop, step):
        if isinstance(value, complex) or not is_scalar(value):
            raise TypeError(
                f"arange takes ints and floats, not {type(value).__name__}")
    if step == 0:
        raise ValueError("step must not be 0")
    floating = any([isinstance(value, float) for value in (start, stop, step)])
    if dtype is None:
        code = FLOAT64 if floating else INT64
    else:
        code = dtype_code(dtype)
    if floating and kind_of[code] < KIND_FLOAT:
        # NumPy's rule: the first two numbers are rounded, and say the distance.
        return own_result(call_numpy(
            np.arange, (start, stop, step), {"dtype": dtype_object(code)}))
    return steps_array(start, stop, step, code)


cdef BaseArray steps_array(object start, object stop, object step, int code):
    """Return ``start, start + step, ...`` up to `stop`, computed in 64 bits."""
    cdef int wide = FLOAT64
    cdef Py_ssize_t length[1]
    cdef BaseArray result
    if isinstance(start, float) or isinstance(stop, float) or isinstance(step, float):
        count = math.ceil((stop - start) / step)
    else:
        count = -((start - stop) // step)
    if kind_of[code] < KIND_FLOAT:
        wide = UINT64 if kind_of[code] == KIND_UINT else INT64
    parse_shape(max(count, 0), length)
    if count > 0:
        # The two ends must fit the dtype, and then all do.
        check_fits(start, code)
        check_fits(start + (count - 1) * step, code)
    result = new_empty(wide, 1, length)
    if length[0] and wide == FLOAT64:
        fill_floats(<double *>data_of(result), length[0], start, step)
    elif length[0]:
        fill_integers(<uint64_t *>data_of(result), length[0], start % 2**64,
                      step % 2**64)
    return result if code == wide else cast(result, code)


cdef int check_fits(object value, int code) except -1:
    cdef char[16] room
    store_scalar(value, code, room)
    return 0


cdef void fill_floats(double *out, Py_ssize_t count, double start,
                      double step) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(count):
        out[i] = start + i * step


cdef void fill_integers(uint64_t *out, Py_ssize_t count, uint64_t start,
                        uint64_t step) noexcept nogil:
    # Modulo 2**64, which is right for negative numbers too.
    cdef Py_ssize_t i
    for i in range(count):
        out[i] = start + <uint64_t>i * step


def linspace(start, stop, /, num, *, dtype=None, device=None, endpoint=True):
    """Return evenly spaced numbers over an interval.

    Parameters
    ----------
    start, stop : int, float or complex
        Ends of the interval.
    num : int
        How many numbers; 0 or more.
    dtype : dtype, optional
        A floating-point one. Default: float64, or complex128 for complex ends.
    device : Device or str, optional
        Default: ``"cpu"``.
    endpoint : bool
        Whether `stop` is among the numbers.

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
    as_device(device)
    if num < 0:
        raise ValueError(f"num={num} is negative; it is 0 or more")
    wanted = None if dtype is None else dtype_object(dtype_code(dtype))
    return own_result(call_numpy(
        np.linspace, (start, stop, num), {"dtype": wanted, "endpoint": endpoint}))


def eye(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None):
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_cols : int, optional
        Number of columns. Default: `n_rows`.
    k : int
        Which diagonal: 0 the main one, positive ones above it.
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
    x = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype,
              device=device)
    rows, columns = x.shape
    if -rows < k < columns:
        diagonal = numpy_view(<BaseArray>x)
        np.fill_diagonal(diagonal[:, k:] if k >= 0 else diagonal[-k:], 1)
    return x

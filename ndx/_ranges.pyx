"""Creation functions of the standard that make sequences of numbers, and `eye`."""

import numpy as np

from ndx._array cimport BaseArray, numpy_view
from ndx._dtypes cimport dtype_code, dtype_object
from ndx._numpy_memory cimport call_numpy, own_result
from ndx._operations cimport is_scalar

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
    if dtype is None:
        floating = any([isinstance(value, float) for value in (start, stop, step)])
        dtype = np.float64 if floating else np.int64
    wanted = dtype_object(dtype_code(dtype))
    return own_result(call_numpy(np.arange, (start, stop, step), {"dtype": wanted}))


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

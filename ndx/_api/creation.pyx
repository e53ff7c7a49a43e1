"""Creation functions of the standard that fill new arrays."""

import numpy as np

from ndx._array.dispatch cimport device_engine
from ndx._array.storage cimport BaseArray, new_array, new_like
from ndx._compute.copies cimport fill
from ndx._compute.elementwise cimport as_operand, is_scalar
from ndx._compute.numpy_calls cimport argument
from ndx._context.placement cimport device_of_new
from ndx._lib.dtypes cimport (
    BOOL, COMPLEX128, FLOAT64, INT64, KIND_COMPLEX, KIND_UINT, dtype_code, dtype_object,
    kind_of,
)
from ndx._lib.layout cimport MAXDIMS, parse_shape

from ndx._lib.device import find_device, number_of

__all__ = [
    "empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros",
    "zeros_like",
]


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
    return device_engine().upload(x, where) if where else x

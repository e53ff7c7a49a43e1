"""Real and imaginary parts: elementwise functions of the standard that return views."""

from ndx._array.storage cimport BaseArray
from ndx._compute.elementwise cimport part
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport KIND_COMPLEX, dtype_object, kind_of

__all__ = ["imag", "real"]


def real(x: Array, /) -> NDArray:
    """Return the real parts.

    Parameters
    ----------
    x : NDArray
        Of a numeric dtype.

    Returns
    -------
    NDArray
        A view of `x`, of the dtype of its parts; `x` itself if it is real.

    Notes
    -----
    Array API 2025.12, `real`.

    Examples
    --------
    >>> import ndx
    >>> ndx.real(ndx.asarray([1 + 2j]))
    NDArray([1.])
    """
    cdef BaseArray array = argument(x, "real")
    return part(array, 0) if kind_of[array.dtype] == KIND_COMPLEX else array


def imag(x: Array, /) -> NDArray:
    """Return the imaginary parts.

    Parameters
    ----------
    x : NDArray
        Of a complex dtype.

    Returns
    -------
    NDArray
        A view of `x`, of the dtype of its parts.

    Raises
    ------
    TypeError
        If `x` is not complex.

    Notes
    -----
    Array API 2025.12, `imag`.

    Examples
    --------
    >>> import ndx
    >>> ndx.imag(ndx.asarray([1 + 2j]))
    NDArray([2.])
    """
    cdef BaseArray array = argument(x, "imag")
    if kind_of[array.dtype] != KIND_COMPLEX:
        raise TypeError(
            f"imag takes complex dtypes, not {dtype_object(array.dtype)}")
    return part(array, 1)

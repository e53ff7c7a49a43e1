"""Real and imaginary parts: elementwise functions of the standard that return views."""

from ndx._array.storage cimport BaseArray, same_view, set_layout
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport (
    COMPLEX64, FLOAT32, FLOAT64, KIND_COMPLEX, dtype_object, itemsize_of, kind_of,
)

__all__ = ["imag", "real"]


cdef BaseArray part(BaseArray x, Py_ssize_t offset):
    """Return the real (0) or imaginary (1) parts of a complex array."""
    cdef BaseArray view = same_view(x)
    view.dtype = FLOAT32 if x.dtype == COMPLEX64 else FLOAT64
    view.offset += offset * itemsize_of[view.dtype]
    set_layout(view)
    return view


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

"""Utility functions of the standard."""

from ndx._array.storage cimport BaseArray
from ndx._compute.elementwise cimport binary
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.numpy_calls cimport argument
from ndx._compute.reductions cimport distinct, reduce_truth, repeats
from ndx._lib.dtypes cimport BOOL
from ndx._lib.layout cimport normalize_axes, read_axes

from ndx._api.elementwise import subtract
from ndx._api.manipulation import concat
from ndx._compute.numpy_calls import as_int, axis_index, on_device

__all__ = ["all", "any", "diff"]

cdef Ufunc LOGICAL_AND = find_ufunc("logical_and")
cdef Ufunc LOGICAL_OR = find_ufunc("logical_or")
cdef Ufunc NOT_EQUAL = find_ufunc("not_equal")


cdef BaseArray truth(object x, str name):
    cdef BaseArray values = argument(x, name)
    if values.dtype == BOOL:
        return values
    return binary(NOT_EQUAL, values, 0, None)


cdef BaseArray test(str name, Ufunc ufunc, object x, object axis, bint keepdims):
    """Reduce the truth values of the elements by a logical operation."""
    cdef BaseArray values = argument(x, name)
    if values.block.device:
        return on_device(name, values, axis=normalize_axes(axis, values.ndim),
                         keepdims=bool(keepdims))
    axis = read_axes(axis)
    if repeats(values, axis) > 1:
        values = distinct(values, axis)
    return reduce_truth(name, ufunc, values, BOOL, axis, keepdims)


def all(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> NDArray:
    """Return whether all elements along axes are true (not zero).

    Parameters
    ----------
    x : NDArray
        Any dtype.
    axis : int or tuple of int, optional
        Axes to test over, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray of bool
        True for no elements.

    Notes
    -----
    Array API 2025.12, `all`.

    Examples
    --------
    >>> import ndx
    >>> ndx.all(ndx.asarray([1, 0]))
    NDArray(False)
    """
    return test("all", LOGICAL_AND, x, axis, keepdims)


def any(x: Array, /, *, axis: Axes | None = None, keepdims: bool = False) -> NDArray:
    """Return whether any element along axes is true (not zero).

    Parameters
    ----------
    x : NDArray
        Any dtype.
    axis : int or tuple of int, optional
        Axes to test over, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.

    Returns
    -------
    NDArray of bool
        False for no elements.

    Notes
    -----
    Array API 2025.12, `any`.

    Examples
    --------
    >>> import ndx
    >>> ndx.any(ndx.asarray([1, 0]))
    NDArray(True)
    """
    return test("any", LOGICAL_OR, x, axis, keepdims)


def diff(x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None,
         append: Array | None = None) -> NDArray:
    """Return the n-th differences of neighbours along an axis.

    Parameters
    ----------
    x : NDArray
        Numeric, with one axis or more.
    axis : int
        In ``[-x.ndim, x.ndim)``.
    n : int
        Number of times to take differences, 0 or more. With 0 the result is `x`,
        without `prepend` and `append`.
    prepend, append : NDArray, optional
        Joined before and after `x` first; of its shape except along `axis`.

    Returns
    -------
    NDArray
        Of the shape of `x`, but n shorter along `axis` (after joining).

    Raises
    ------
    ValueError
        If `n` is negative, `axis` is out of range or the shapes don't match.

    Notes
    -----
    Array API 2025.12, `diff`.

    Examples
    --------
    >>> import ndx
    >>> ndx.diff(ndx.asarray([1, 4, 9, 16]), n=2)
    NDArray([2, 2])
    """
    x = argument(x, "diff")
    axis, n = axis_index(axis, x.ndim), as_int(n, "n")
    if n < 0:
        msg = f"n={n} is negative; it is 0 or more"
        raise ValueError(msg)
    if n == 0:
        return x
    parts = [part for part in (prepend, x, append) if part is not None]
    if len(parts) > 1:
        x = concat(parts, axis=axis)
    before = (slice(None),) * axis
    # The axis is empty after as many steps as its length, so that more are useless.
    for _ in range(min(n, max(x.shape[axis], 1))):
        x = subtract(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x

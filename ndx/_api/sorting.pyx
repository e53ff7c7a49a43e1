"""Sorting functions of the standard."""

from ndx._array.storage cimport BaseArray, new_empty
from ndx._compute.copies cimport copy_into
from ndx._compute.costs cimport LARGE
from ndx._compute.numpy_calls cimport argument
from ndx._compute.sorting cimport MAX_ITERATED, ranked, sort_in_place, sorting_indices
from ndx._lib.layout cimport normalize_axis

from ndx._api.manipulation import flip, moveaxis, reshape
from ndx._compute.numpy_calls import call, into, on_device

__all__ = ["argsort", "sort"]


cdef object by_rows(object function, object x, int axis, object descending,
                    object stable):
    """Sort an array with more axes than NumPy can sort, as a matrix of rows."""
    cdef object moved = moveaxis(x, axis, -1)
    cdef Py_ssize_t length = x.shape[axis]
    rows = reshape(moved, (x.size // length if length else 0, length))
    found = function(rows, descending=descending, stable=stable)
    return moveaxis(reshape(found, moved.shape), -1, axis)


def sort(x: Array, /, *, axis: int = -1, descending: bool = False,
         stable: bool = True) -> NDArray:
    """Return an array with its elements sorted along an axis.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    axis : int
        In ``[-x.ndim, x.ndim)``.
    descending : bool
        Whether the largest element comes first.
    stable : bool
        Whether equal elements stay in their order.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`; NaN counts as the largest
        number.

    Raises
    ------
    ValueError
        If `axis` is out of range.

    Notes
    -----
    Array API 2025.12, `sort`. Complex numbers are sorted by real parts, then
    imaginary ones.

    Examples
    --------
    >>> import ndx
    >>> ndx.sort(ndx.asarray([2, 3, 1]), descending=True)
    NDArray([3, 2, 1])
    """
    cdef BaseArray array = argument(x, "sort")
    cdef int which = normalize_axis(axis, array.ndim)
    if array.block.device:
        return on_device("sort", array, axis=which, descending=bool(descending),
                         stable=bool(stable))
    if array.ndim > MAX_ITERATED:
        return by_rows(sort, array, which, descending, stable)
    cdef BaseArray result = new_empty(array.dtype, array.ndim, array.shape)
    cdef BaseArray view = result
    copy_into(result, array)
    if descending and result.size:
        # An ascending sort of the reversed view keeps the order of equal elements.
        view = flip(result, axis=which)
    sort_in_place(view, which, stable)
    return result


def argsort(x: Array, /, *, axis: int = -1, descending: bool = False,
            stable: bool = True) -> NDArray:
    """Return the indices that sort an array along an axis.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    axis : int
        In ``[-x.ndim, x.ndim)``.
    descending : bool
        Whether the largest element comes first.
    stable : bool
        Whether equal elements stay in their order.

    Returns
    -------
    NDArray of int64
        Of the shape of `x`.

    Raises
    ------
    ValueError
        If `axis` is out of range.

    Notes
    -----
    Array API 2025.12, `argsort`. NaN and complex numbers as for `sort`.

    Examples
    --------
    >>> import ndx
    >>> ndx.argsort(ndx.asarray([2, 3, 1]))
    NDArray([2, 0, 1])
    """
    cdef BaseArray array = argument(x, "argsort")
    cdef int which = normalize_axis(axis, array.ndim)
    if array.block.device:
        return on_device("argsort", array, axis=which, descending=bool(descending),
                         stable=bool(stable))
    if array.ndim > MAX_ITERATED:
        return by_rows(argsort, array, which, descending, stable)
    if descending:
        order = ascending(flip(array, axis=which), which, stable)
        into(order, "subtract", array.shape[which] - 1, order)
        return flip(order, axis=which)
    return ascending(array, which, stable)


cdef object ascending(BaseArray x, int axis, bint stable):
    cdef BaseArray found = ranked(x, axis)
    if found is not None:
        return found
    if x.size < LARGE:
        return sorting_indices(x, axis, stable)
    return call("ndarray.argsort", x, axis=axis, kind="stable" if stable else None)

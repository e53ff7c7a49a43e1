"""Sorting functions of the standard."""

from ndx._creation import empty
from ndx._engine import argument, axis_index, call, into, on_views
from ndx._views import flip

__all__ = ["argsort", "sort"]


def _kind(stable):
    return "stable" if stable else None


def _sort_view(view, source, axis, kind, descending):
    view[...] = source
    if descending:
        view = view[(slice(None),) * axis + (slice(None, None, -1),)]
    view.sort(axis=axis, kind=kind)


def sort(x, /, *, axis=-1, descending=False, stable=True):
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
    x = argument(x, "sort")
    axis = axis_index(axis, x.ndim)
    out = empty(x.shape, dtype=x.dtype)
    # Sorting the reversed view upwards sorts downwards, and keeps equal ones' order.
    on_views(_sort_view, out, x, axis, _kind(stable), descending)
    return out


def argsort(x, /, *, axis=-1, descending=False, stable=True):
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
    x = argument(x, "argsort")
    axis = axis_index(axis, x.ndim)
    if not descending:
        return call("ndarray.argsort", x, axis=axis, kind=_kind(stable))
    order = call("ndarray.argsort", flip(x, axis=axis), axis=axis, kind=_kind(stable))
    into(order, "subtract", x.shape[axis] - 1, order)
    return flip(order, axis=axis)

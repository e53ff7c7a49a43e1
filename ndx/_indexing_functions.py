"""Indexing functions of the standard."""

from ndx._creation import empty
from ndx._data_types import astype, int64
from ndx._engine import argument, axis_index, call, into, on_views

__all__ = ["take", "take_along_axis"]


def _positions(indices, length, name):
    """Return indices as int64, after a check that they fit an axis."""
    indices = argument(indices, name)
    if indices.dtype.kind not in "iu":
        msg = f"{name} takes integer indices, not {indices.dtype}"
        raise TypeError(msg)
    if indices.size:
        low, high = on_views(lambda view: (int(view.min()), int(view.max())), indices)
        if low < -length or high >= length:
            bad = low if low < -length else high
            msg = (
                f"{name}: index {bad} is out of bounds for an axis of length {length}; "
                f"valid are {-length} to {length - 1}"
            )
            raise IndexError(msg)
    return astype(indices, int64, copy=False)


def take(x, indices, /, *, axis=None):
    """Return the elements at given positions along an axis.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray, shape (n,)
        Integers in ``[-k, k)``, where k is the length of the axis.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. May be left out if `x` has one axis.

    Returns
    -------
    NDArray
        A new array of the shape of `x` but for `axis`, which has length n.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If the indices are not integers.
    ValueError
        If `indices` has not just one axis, or `axis` is out of range, or missing.

    Notes
    -----
    Array API 2025.12, `take`.

    Examples
    --------
    >>> import ndx
    >>> ndx.take(ndx.asarray([10, 20, 30]), ndx.asarray([2, 0]))
    NDArray([30, 10])
    """
    x = argument(x, "take")
    if axis is None:
        if x.ndim != 1:
            msg = f"take needs an axis for an array of {x.ndim} axes"
            raise ValueError(msg)
        axis = 0
    axis = axis_index(axis, x.ndim)
    indices = _positions(indices, x.shape[axis], "take")
    if indices.ndim != 1:
        msg = (
            f"take: indices have shape {indices.shape}; they must have one axis (for "
            "others: x[indices])"
        )
        raise ValueError(msg)
    out = empty((*x.shape[:axis], indices.size, *x.shape[axis + 1 :]), dtype=x.dtype)
    if not out.size:
        return out
    # The indices are in bounds: 'wrap' only turns the negative ones, unbuffered.
    return into(out, "take", x, indices, axis=axis, mode="wrap")


def take_along_axis(x, indices, /, *, axis=-1):
    """Return the elements at positions along an axis given for each place.

    Parameters
    ----------
    x : NDArray
        With one axis or more.
    indices : NDArray
        Integers in ``[-k, k)``, where k is the length of the axis; as many axes as
        `x`, broadcast against it but for `axis`.
    axis : int
        In ``[-x.ndim, x.ndim)``.

    Returns
    -------
    NDArray
        A new array of the broadcast shape, with the length of `indices` along `axis`.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If the indices are not integers.
    ValueError
        If the numbers of axes differ, or `axis` is out of range.

    Notes
    -----
    Array API 2025.12, `take_along_axis`.

    Examples
    --------
    >>> import ndx
    >>> x = ndx.asarray([[3, 1, 2]])
    >>> ndx.take_along_axis(x, ndx.argsort(x))
    NDArray([[1, 2, 3]])
    """
    x = argument(x, "take_along_axis")
    axis = axis_index(axis, x.ndim)
    indices = _positions(indices, x.shape[axis], "take_along_axis")
    return call("take_along_axis", x, indices, axis=axis)

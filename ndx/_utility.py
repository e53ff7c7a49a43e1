"""Utility functions of the standard that are no reductions."""

from ndx._elementwise import subtract
from ndx._engine import argument, as_int, axis_index
from ndx._joining import concat

__all__ = ["diff"]


def diff(x, /, *, axis=-1, n=1, prepend=None, append=None):
    """Return the differences of neighbours along an axis, n times over.

    Parameters
    ----------
    x : NDArray
        Numeric, with one axis or more.
    axis : int
        In ``[-x.ndim, x.ndim)``.
    n : int
        How many times; 0 or more. With 0 the result is `x`, to which nothing is added.
    prepend, append : NDArray, optional
        Put before and after `x` first; of its shape but for `axis`.

    Returns
    -------
    NDArray
        Of the shape of `x` but for `axis`, which is n shorter (after `prepend` and
        `append`).

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
    # Of nothing there are no differences, however often.
    for _ in range(min(n, max(x.shape[axis], 1))):
        x = subtract(x[(*before, slice(1, None))], x[(*before, slice(None, -1))])
    return x

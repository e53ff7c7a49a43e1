"""Manipulation functions of the standard that join arrays."""

from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.joining cimport join, same_lengths, shapes_error
from ndx._compute.numpy_calls cimport argument
from ndx._lib.layout cimport check_axes, normalize_axis

from ndx._api.manipulation_views import reshape

__all__ = ["concat", "stack"]

# An array that repeats a few rows can have more than there is memory for views of them.
cdef Py_ssize_t MOST_ROWS = <Py_ssize_t>1 << 32

cdef list arguments(object arrays, str name):
    """Return the arrays of a sequence; raise if it is empty."""
    cdef list found
    if is_array(arrays) and (<BaseArray>arrays).ndim and \
            (<BaseArray>arrays).shape[0] > MOST_ROWS:
        raise ValueError(
            f"{name} takes a sequence of arrays; an array with "
            f"{(<BaseArray>arrays).shape[0]} rows is one of more than fit into memory")
    try:
        items = iter(arrays)
    except TypeError:
        raise TypeError(
            f"{name} takes a sequence of arrays, not {type(arrays).__name__}"
        ) from None
    found = [argument(x, name) for x in items]
    if not found:
        raise ValueError(f"{name} needs one array or more")
    return found


def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> NDArray:
    """Return arrays joined along an existing axis.

    Parameters
    ----------
    arrays : tuple or list of NDArray
        Of one shape, except along `axis`.
    axis : int, optional
        In ``[-N, N)`` for arrays of N axes. None: the arrays are flattened first.

    Returns
    -------
    NDArray
        A new array of the promoted dtype.

    Raises
    ------
    ValueError
        If there is no array, `axis` is out of range or the shapes don't match.

    Notes
    -----
    Array API 2025.12, `concat`.

    Examples
    --------
    >>> import ndx
    >>> ndx.concat([ndx.asarray([1, 2]), ndx.asarray([3])])
    NDArray([1, 2, 3])
    """
    cdef list found = arguments(arrays, "concat")
    if axis is None:
        found = [reshape(x, -1) for x in found]
        axis = 0
    return join(found, normalize_axis(axis, (<BaseArray>found[0]).ndim), False)


def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> NDArray:
    """Return arrays joined along a new axis.

    Parameters
    ----------
    arrays : tuple or list of NDArray
        Of one shape, with N axes.
    axis : int
        Position of the new axis in the result, in ``[-N - 1, N + 1)``.

    Returns
    -------
    NDArray
        A new array of the promoted dtype.

    Raises
    ------
    ValueError
        If there is no array, `axis` is out of range or the shapes differ.

    Notes
    -----
    Array API 2025.12, `stack`.

    Examples
    --------
    >>> import ndx
    >>> ndx.stack([ndx.asarray([1, 2]), ndx.asarray([3, 4])], axis=1)
    NDArray([[1, 3],
             [2, 4]])
    """
    cdef list found = arguments(arrays, "stack")
    cdef BaseArray first = found[0]
    cdef int which
    check_axes(first.ndim + 1)
    which = normalize_axis(axis, first.ndim + 1)
    for x in found:
        if not same_lengths(first, <BaseArray>x, -1):
            raise shapes_error("stack: the shapes differ:", found)
    return join(found, which, True)

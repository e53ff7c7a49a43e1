"""The function of the standard that repeats elements."""

from math import prod

from ndx._array.storage cimport BaseArray
from ndx._compute.copies cimport cast
from ndx._compute.numpy_calls cimport argument
from ndx._compute.repeating cimport repeated, repeated_each
from ndx._lib.dtypes cimport (
    FLOAT64, INT64, KIND_FLOAT, KIND_UINT, dtype_object, kind_of,
)
from ndx._lib.layout cimport normalize_axis

from ndx._api.manipulation_broadcasting import broadcast_to
from ndx._api.manipulation_views import expand_dims, reshape
from ndx._api.statistical import sum as total
from ndx._compute.numpy_calls import as_int, call

__all__ = ["repeat"]

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    MOST_AXES = 64


def repeat(x: Array, repeats: Array | int, /, *, axis: int | None = None) -> NDArray:
    """Return an array with each element repeated.

    Parameters
    ----------
    x : NDArray
    repeats : int or NDArray
        Number of repetitions: one for all elements, or an integer array with one for
        each element along the axis.
    axis : int, optional
        In ``[-x.ndim, x.ndim)``. Default: `x` is flattened first.

    Returns
    -------
    NDArray
        A new array; its shape depends on the values of `repeats`.

    Raises
    ------
    TypeError
        If `repeats` is neither an integer nor an array of integers.
    ValueError
        If a count is negative, or the numbers of counts and elements differ.

    Notes
    -----
    Array API 2025.12, `repeat`.

    Examples
    --------
    >>> import ndx
    >>> ndx.repeat(ndx.asarray([1, 2]), 2)
    NDArray([1, 1, 2, 2])
    """
    cdef BaseArray array = argument(x, "repeat"), result
    cdef int which
    if axis is None:
        if array.ndim != 1:
            array = reshape(array, -1)
        which = 0
    else:
        which = normalize_axis(axis, array.ndim)
    try:
        repeats = as_int(repeats, "repeats")
    except TypeError:
        return by_counts(array, argument(repeats, "repeat"), which)
    if repeats < 0:
        raise ValueError(f"repeats={repeats} is negative; it is 0 or more")
    if array.block.device == 0 and repeats <= PY_SSIZE_T_MAX:
        result = repeated(array, repeats, which)
        if result is not None:
            return result
    return spread(array, repeats, which)


cdef object spread(object x, object repeats, int axis):
    """Repeat elements by a broadcast view: on a device, or with as many axes as any."""
    before, length, after = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    shape = (*before, length * repeats, *after)
    if x.ndim == MOST_AXES:
        # One more axis would exceed the limit, so the other axes are merged into two.
        before, after = (prod(before),), (prod(after),)
        x = reshape(x, (*before, length, *after))
    view = broadcast_to(
        expand_dims(x, len(before) + 1), (*before, length, repeats, *after))
    return reshape(view, shape, copy=True)


cdef object by_counts(BaseArray x, BaseArray counts, int axis):
    """Repeat each element along an axis as often as its count says."""
    cdef BaseArray result
    if counts.ndim > 1:
        raise ValueError(
            f"repeat: counts have {counts.ndim} axes; they have one, or none")
    if kind_of[counts.dtype] >= KIND_FLOAT:
        raise TypeError(
            f"repeat: counts are integers, not {dtype_object(counts.dtype)}")
    if counts.block.device == 0 and x.block.device == 0:
        # A copy, which no other thread changes.
        counts = cast(counts, INT64) if counts.size == x.shape[axis] else counts
        result = repeated_each(x, counts, axis)
        if result is not None:
            return result
    if kind_of[counts.dtype] == KIND_UINT:
        # NumPy does not accept uint64.
        counts = cast(counts, INT64)
    if counts.block.device == 0 and float(total(cast(counts, FLOAT64))) >= 2**62:
        # NumPy's own sum of the counts would wrap.
        raise ValueError(
            "repeat: the counts add up to more than the address space holds")
    return call("repeat", x, counts, axis=axis)

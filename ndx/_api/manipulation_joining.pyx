"""Manipulation functions of the standard that join arrays."""

from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport cast, copy_into
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport promote_all
from ndx._lib.layout cimport MAXDIMS, check_axes, normalize_axis

from ndx._api.manipulation_views import expand_dims, reshape
from ndx._compute.numpy_calls import on_device

__all__ = ["concat", "stack"]

cdef extern from "ndx/internal/arithmetic.h":
    bint ndx_add(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *out) nogil


cdef list arguments(object arrays, str name):
    """Return the arrays of a sequence; raise if it is empty."""
    cdef list found
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


cdef bint same_lengths(BaseArray a, BaseArray b, int but) noexcept:
    """Whether two shapes agree except along one axis."""
    cdef int axis
    if a.ndim != b.ndim:
        return False
    for axis in range(a.ndim):
        if axis != but and a.shape[axis] != b.shape[axis]:
            return False
    return True


cdef object shapes_error(str what, list arrays):
    return ValueError(f"{what} {', '.join([str(x.shape) for x in arrays])}")


cdef BaseArray join(list arrays, int axis):
    """Return arrays joined along an axis, in the promoted dtype."""
    cdef BaseArray first = arrays[0], array, result, piece
    cdef Py_ssize_t shape[MAXDIMS]
    cdef Py_ssize_t start = 0
    cdef int dtype = first.dtype, i
    cdef bint mixed = False, on_a_device = False
    for i in range(first.ndim):
        shape[i] = first.shape[i]
    shape[axis] = 0
    for item in arrays:
        array = item
        if not same_lengths(first, array, axis):
            # This is also the error for an array without this axis.
            also = "" if first.ndim == array.ndim else ", in the number of axes"
            raise shapes_error(
                f"concat: shapes differ in more than axis {axis}{also}:", arrays)
        if ndx_add(shape[axis], array.shape[axis], &shape[axis]):
            raise shapes_error(
                f"concat: together the lengths along axis {axis} are beyond the "
                "address space (2**63 bytes):", arrays)
        mixed = mixed or array.dtype != first.dtype
        on_a_device = on_a_device or array.block.device != 0
    if mixed:
        dtype = promote_all([(<BaseArray>item).dtype for item in arrays])
    if on_a_device:
        return on_device("concat", [
            item if (<BaseArray>item).dtype == dtype else cast(item, dtype)
            for item in arrays], axis=axis)
    result = new_empty(dtype, first.ndim, shape)
    for item in arrays:
        array = item
        piece = new_view(result, result.ndim)
        for i in range(result.ndim):
            piece.shape[i] = array.shape[i]
            piece.strides[i] = result.strides[i]
        piece.offset += start
        start += array.shape[axis] * result.strides[axis]
        set_layout(piece)
        copy_into(piece, array)
    return result


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
    return join(found, normalize_axis(axis, (<BaseArray>found[0]).ndim))


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
    return join([expand_dims(x, which) for x in found], which)

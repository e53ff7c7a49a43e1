"""Manipulation functions that return views: another layout over the same block."""

from ndx._array.storage cimport (
    BaseArray, check_room, new_array, new_view, same_view, set_layout,
)
from ndx._compute.copies cimport copy_into
from ndx._compute.numpy_calls cimport argument
from ndx._lib.layout cimport (
    MAXDIMS, check_axes, normalize_axis, parse_axes, shape_tuple,
)
from ndx._methods.numpy_layout cimport reshape_view, reshaped

from ndx._compute.numpy_calls import axes_of

__all__ = [
    "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "reshape",
    "squeeze", "unstack",
]

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object value, int *overflow) except? -1


# ---------------------------------------------------------------- shapes

def reshape(x: Array, /, shape: Shape, *, copy: bool | None = None) -> NDArray:
    """Return the elements of an array, in C order, in another shape.

    Parameters
    ----------
    x : NDArray
    shape : int or tuple of int
        Of as many elements. One length may be -1, and is computed from the others.
    copy : bool, optional
        True: always copy. None: return a view if the layout allows, else copy. False:
        return a view, or raise.

    Returns
    -------
    NDArray

    Raises
    ------
    ValueError
        If the shape has another number of elements, or `copy` is False and a copy is
        needed.

    Notes
    -----
    Array API 2025.12, `reshape`.

    Examples
    --------
    >>> import ndx
    >>> ndx.reshape(ndx.arange(4), (2, -1))
    NDArray([[0, 1],
             [2, 3]])
    """
    cdef BaseArray array = argument(x, "reshape")
    cdef Py_ssize_t wanted[MAXDIMS]
    cdef int ndim = reshaped(array, shape, wanted)
    cdef BaseArray view, compact
    if copy is not True:
        view = reshape_view(array, ndim, wanted)
        if view is not None:
            return view
        if copy is False:
            raise ValueError(
                f"copy=False, but an array of shape "
                f"{shape_tuple(array.ndim, array.shape)} with strides "
                f"{shape_tuple(array.ndim, array.strides)} has no view of shape "
                f"{shape_tuple(ndim, wanted)}; copy=None copies where it must")
    compact = new_array(array.block.device, array.dtype, array.ndim, array.shape, NULL,
                        False)
    copy_into(compact, array)
    return reshape_view(compact, ndim, wanted)


def expand_dims(x: Array, /, axis: Axes) -> NDArray:
    """Return an array with axes of length 1 inserted.

    Parameters
    ----------
    x : NDArray, N axes
    axis : int or tuple of int
        Positions of the new axes in the result, each in ``[-M, M)`` with
        ``M = N + len(axis)``.

    Returns
    -------
    NDArray
        A view of `x`.

    Raises
    ------
    IndexError
        If a position is out of range.
    ValueError
        If a position is named twice.

    Notes
    -----
    Array API 2025.12, `expand_dims`.

    Examples
    --------
    >>> import ndx
    >>> ndx.expand_dims(ndx.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    cdef BaseArray array = argument(x, "expand_dims")
    cdef tuple axes = axes_of(axis)
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t ndim = array.ndim + len(axes)
    cdef BaseArray view
    cdef int i, source = 0
    check_axes(ndim)
    for item in axes:
        if not -ndim <= item < ndim:
            raise IndexError(
                f"axis {item} is out of range for a result of {ndim} axes; valid are "
                f"{-ndim} to {ndim - 1}")
    parse_axes(axes, <int>ndim, chosen)
    view = new_view(array, <int>ndim)
    for i in range(view.ndim):
        if chosen[i]:
            view.shape[i] = 1
            view.strides[i] = 0
        else:
            view.shape[i] = array.shape[source]
            view.strides[i] = array.strides[source]
            source += 1
    set_layout(view)
    return view


def squeeze(x: Array, /, axis: Axes) -> NDArray:
    """Return an array without some of its axes of length 1.

    Parameters
    ----------
    x : NDArray
    axis : int or tuple of int
        Axes to remove, each in ``[-x.ndim, x.ndim)`` and of length 1.

    Returns
    -------
    NDArray
        A view of `x`.

    Raises
    ------
    ValueError
        If an axis has another length, is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `squeeze`.

    Examples
    --------
    >>> import ndx
    >>> ndx.squeeze(ndx.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    cdef BaseArray array = argument(x, "squeeze")
    cdef bint chosen[MAXDIMS]
    cdef BaseArray view
    cdef int i, kept = 0
    if axis is None:
        raise TypeError("squeeze needs an axis: an int or a tuple of ints")
    parse_axes(axis, array.ndim, chosen)
    for i in range(array.ndim):
        if not chosen[i]:
            kept += 1
        elif array.shape[i] != 1:
            raise ValueError(
                f"axis {i} of an array of shape {shape_tuple(array.ndim, array.shape)} "
                f"has length {array.shape[i]}; only axes of length 1 can be squeezed")
    view = new_view(array, kept)
    kept = 0
    for i in range(array.ndim):
        if not chosen[i]:
            view.shape[kept] = array.shape[i]
            view.strides[kept] = array.strides[i]
            kept += 1
    set_layout(view)
    return view


# ---------------------------------------------------------------- axes

cdef BaseArray permuted(BaseArray x, const int *order):
    cdef BaseArray view = new_view(x, x.ndim)
    cdef int i
    for i in range(x.ndim):
        view.shape[i] = x.shape[order[i]]
        view.strides[i] = x.strides[order[i]]
    set_layout(view)
    return view


cdef bint is_plain_order(object axes, int ndim, int *order) except -1:
    """Whether axes are a permutation given as a tuple of ints; write it to `order`."""
    cdef bint chosen[MAXDIMS]
    cdef Py_ssize_t axis
    cdef int overflow = 0, i
    if type(axes) is not tuple or len(<tuple>axes) != ndim:
        return False
    for i in range(ndim):
        chosen[i] = False
    for i in range(ndim):
        item = (<tuple>axes)[i]
        if type(item) is not int:
            return False
        axis = PyLong_AsLongLongAndOverflow(item, &overflow)
        if axis < 0:
            axis += ndim
        if overflow or not 0 <= axis < ndim or chosen[axis]:
            return False
        chosen[axis] = True
        order[i] = <int>axis
    return True


def permute_dims(x: Array, /, axes: Sequence[int]) -> NDArray:
    """Return an array with its axes in another order.

    Parameters
    ----------
    x : NDArray
    axes : tuple of int
        A permutation of the axes: axis i of the result is axis ``axes[i]`` of `x`.

    Returns
    -------
    NDArray
        A view of `x`.

    Raises
    ------
    ValueError
        If `axes` is not a permutation of the axes.

    Notes
    -----
    Array API 2025.12, `permute_dims`.

    Examples
    --------
    >>> import ndx
    >>> ndx.permute_dims(ndx.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    cdef BaseArray array = argument(x, "permute_dims")
    cdef tuple wanted
    cdef bint chosen[MAXDIMS]
    cdef int order[MAXDIMS]
    cdef int i
    if is_plain_order(axes, array.ndim, order):
        return permuted(array, order)
    wanted = axes_of(axes, "axes")
    if len(wanted) != array.ndim:
        raise ValueError(
            f"axes {wanted} is not a permutation of the {array.ndim} axes of an array "
            f"of shape {shape_tuple(array.ndim, array.shape)}")
    parse_axes(wanted, array.ndim, chosen)
    for i in range(array.ndim):
        order[i] = normalize_axis(wanted[i], array.ndim)
    return permuted(array, order)


def moveaxis(x: Array, source: Axes, destination: Axes, /) -> NDArray:
    """Return an array with some axes moved; the others keep their order.

    Parameters
    ----------
    x : NDArray
    source : int or tuple of int
        Axes to move.
    destination : int or tuple of int
        Position of each of them in the result.

    Returns
    -------
    NDArray
        A view of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range or named twice, or the numbers of axes differ.

    Notes
    -----
    Array API 2025.12, `moveaxis`.

    Examples
    --------
    >>> import ndx
    >>> ndx.moveaxis(ndx.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    cdef BaseArray array = argument(x, "moveaxis")
    cdef tuple sources = axes_of(source, "source")
    cdef tuple targets = axes_of(destination, "destination")
    cdef bint moved[MAXDIMS]
    cdef bint taken[MAXDIMS]
    cdef int order[MAXDIMS]
    cdef int i, rest = 0
    if len(sources) != len(targets):
        raise ValueError(
            f"source {sources} and destination {targets} name {len(sources)} and "
            f"{len(targets)} axes; they must be as many")
    parse_axes(sources, array.ndim, moved)
    parse_axes(targets, array.ndim, taken)
    for i in range(<int>len(sources)):
        order[normalize_axis(targets[i], array.ndim)] = normalize_axis(
            sources[i], array.ndim)
    for i in range(array.ndim):
        if not taken[i]:
            while moved[rest]:
                rest += 1
            order[i] = rest
            rest += 1
    return permuted(array, order)


def matrix_transpose(x: Array, /) -> NDArray:
    """Return each matrix in a stack transposed.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)

    Returns
    -------
    NDArray, shape (..., N, M)
        A view of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `matrix_transpose`.

    Examples
    --------
    >>> import ndx
    >>> ndx.matrix_transpose(ndx.asarray([[1, 2], [3, 4]]))
    NDArray([[1, 3],
             [2, 4]])
    """
    return (<object>argument(x, "matrix_transpose")).mT


def flip(x: Array, /, *, axis: Axes | None = None) -> NDArray:
    """Return an array with the order of its elements reversed along axes.

    Parameters
    ----------
    x : NDArray
    axis : int or tuple of int, optional
        Axes to reverse, each in ``[-x.ndim, x.ndim)``. Default: all.

    Returns
    -------
    NDArray
        A view of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `flip`.

    Examples
    --------
    >>> import ndx
    >>> ndx.flip(ndx.asarray([1, 2, 3]))
    NDArray([3, 2, 1])
    """
    cdef BaseArray array = argument(x, "flip")
    cdef bint chosen[MAXDIMS]
    cdef BaseArray view
    cdef int i
    parse_axes(axis, array.ndim, chosen)
    view = same_view(array)
    for i in range(view.ndim):
        if chosen[i] and view.size:
            view.offset += (view.shape[i] - 1) * view.strides[i]
            view.strides[i] = -view.strides[i]
    set_layout(view)
    return view


def unstack(x: Array, /, *, axis: int = 0) -> tuple[NDArray, ...]:
    """Return the sub-arrays along an axis.

    Parameters
    ----------
    x : NDArray
    axis : int
        In ``[-x.ndim, x.ndim)``.

    Returns
    -------
    tuple of NDArray
        Views of `x`, one for each index along the axis.

    Raises
    ------
    ValueError
        If the axis is out of range.

    Notes
    -----
    Array API 2025.12, `unstack`.

    Examples
    --------
    >>> import ndx
    >>> ndx.unstack(ndx.asarray([[1, 2], [3, 4]]))
    (NDArray([1, 2]), NDArray([3, 4]))
    """
    cdef BaseArray array = argument(x, "unstack")
    cdef int i = normalize_axis(axis, array.ndim)
    check_room(array.shape[i], sizeof(BaseArray), "unstack")
    key = (slice(None),) * i
    # With the ellipsis the result is a view even if no axis is left.
    return tuple([array[(*key, k, ...)] for k in range(array.shape[i])])

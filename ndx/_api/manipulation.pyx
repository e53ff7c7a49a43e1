"""Manipulation functions of the standard: shapes, axes, joined and repeated arrays."""

from itertools import product
from math import prod

from ndx._array.storage cimport (
    BaseArray, check_room, is_array, new_array, new_view, set_layout, strided,
)
from ndx._compute.copies cimport cast, copy_into
from ndx._compute.manipulation cimport (
    check_repeats, join, repeated, repeated_each, same_lengths, shapes_error,
)
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport (
    INT64, KIND_FLOAT, KIND_UINT, dtype_object, kind_of,
)
from ndx._lib.integers cimport int_value
from ndx._lib.layout cimport (
    MAXDIMS, Strided, broadcast_into, broadcast_strides, check_axes, count_elements,
    normalize_axis, parse_axes, parse_shape, shape_tuple,
)
from ndx._methods.numpy_layout cimport flipped, reshape_view, reshaped

from ndx._api.creation import empty_like
from ndx._compute.manipulation import rolled, tiled
from ndx._compute.numpy_calls import as_int, axes_of, axis_index, call

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims",
    "flip", "matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape", "roll",
    "squeeze", "stack", "tile", "unstack",
]


cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX


# ---- views: shapes -------------------------------------------------------------------

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


# ---- views: axes ---------------------------------------------------------------------

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
        axis = int_value(item, &overflow)
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
    parse_axes(axis, array.ndim, chosen)
    return flipped(array, chosen)


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


# ---- broadcasting --------------------------------------------------------------------

cdef int broadcast_all(list shapes, Py_ssize_t *out) except -1:
    """Broadcast shapes together; return the number of axes."""
    cdef Py_ssize_t other[MAXDIMS]
    cdef int ndim = 0, other_ndim
    for shape in shapes:
        other_ndim = parse_shape(shape, other)
        count_elements(other_ndim, other, 1)
        ndim = broadcast_into(ndim, out, other_ndim, other)
        if ndim < 0:
            raise ValueError(
                f"shapes {', '.join([str(item) for item in shapes])} can't be "
                "broadcast together; counted from the last, axes must be equal or 1")
    count_elements(ndim, out, 1)
    return ndim


cdef BaseArray broadcast_view(BaseArray x, int ndim, const Py_ssize_t *shape):
    """Return a view of `x` in a shape that it is known to broadcast to."""
    cdef BaseArray view = new_view(x, ndim)
    cdef Strided layout
    cdef int axis
    strided(x, &layout)
    for axis in range(ndim):
        view.shape[axis] = shape[axis]
    broadcast_strides(&layout, ndim, shape, view.strides)
    set_layout(view)
    if view.size > x.size:
        view.readonly = True
    return view


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape that shapes broadcast to.

    Parameters
    ----------
    *shapes : tuple of int

    Returns
    -------
    tuple of int
        Empty if no shape is given.

    Raises
    ------
    ValueError
        If the shapes can't be broadcast together.

    Notes
    -----
    Array API 2025.12, `broadcast_shapes`.

    Examples
    --------
    >>> import ndx
    >>> ndx.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int ndim = broadcast_all(list(shapes), shape)
    return shape_tuple(ndim, shape)


def broadcast_arrays(*arrays: Array) -> tuple[NDArray, ...]:
    """Return arrays broadcast against one another.

    Parameters
    ----------
    *arrays : NDArray
        Of shapes that broadcast together.

    Returns
    -------
    tuple of NDArray
        Views of one shape, each of the dtype of its argument; read-only where
        elements are repeated.

    Raises
    ------
    ValueError
        If the shapes can't be broadcast together.

    Notes
    -----
    Array API 2025.12, `broadcast_arrays`.

    Examples
    --------
    >>> import ndx
    >>> a, b = ndx.broadcast_arrays(ndx.asarray([1, 2]), ndx.asarray([[3], [4]]))
    >>> b
    NDArray([[3, 3],
             [4, 4]])
    """
    cdef Py_ssize_t shape[MAXDIMS]
    cdef list found = [argument(x, "broadcast_arrays") for x in arrays]
    cdef int ndim = broadcast_all([x.shape for x in found], shape)
    return tuple([broadcast_view(<BaseArray>x, ndim, shape) for x in found])


def broadcast_to(x: Array, /, shape: Shape) -> NDArray:
    """Return an array broadcast to a shape.

    Parameters
    ----------
    x : NDArray
    shape : int or tuple of int
        The shape of the result.

    Returns
    -------
    NDArray
        A view of `x`; read-only if elements are repeated.

    Raises
    ------
    ValueError
        If `x` can't be broadcast to the shape.

    Notes
    -----
    Array API 2025.12, `broadcast_to`.

    Examples
    --------
    >>> import ndx
    >>> ndx.broadcast_to(ndx.asarray([1, 2]), (2, 2))
    NDArray([[1, 2],
             [1, 2]])
    """
    cdef BaseArray array = argument(x, "broadcast_to")
    cdef Py_ssize_t wanted[MAXDIMS]
    cdef Py_ssize_t found[MAXDIMS]
    cdef int ndim = parse_shape(shape, wanted), axis
    cdef bint same
    for axis in range(ndim):
        found[axis] = wanted[axis]
    same = broadcast_into(ndim, found, array.ndim, array.shape) == ndim
    for axis in range(ndim):
        same = same and found[axis] == wanted[axis]
    if not same:
        raise ValueError(
            f"an array of shape {shape_tuple(array.ndim, array.shape)} can't be "
            f"broadcast to {shape_tuple(ndim, wanted)}; counted from the last, its "
            "axes must be equal to the new ones or 1")
    return broadcast_view(array, ndim, wanted)


# ---- joining -------------------------------------------------------------------------

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


# ---- copies that repeat or move elements ---------------------------------------------

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
    check_repeats(x, counts)
    return call("repeat", x, counts, axis=axis)


def roll(
    x: Array, /, shift: int | Sequence[int], *, axis: Axes | None = None
) -> NDArray:
    """Return an array with its elements moved cyclically along axes.

    Parameters
    ----------
    x : NDArray
    shift : int or tuple of int
        Number of places, towards larger indices: one for all axes, or one for each.
    axis : int or tuple of int, optional
        Axes, each in ``[-x.ndim, x.ndim)``. Default: roll the flattened array.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range, or the numbers of shifts and axes differ.

    Notes
    -----
    Array API 2025.12, `roll`.

    Examples
    --------
    >>> import ndx
    >>> ndx.roll(ndx.asarray([1, 2, 3]), 1)
    NDArray([3, 1, 2])
    """
    x = argument(x, "roll")
    found = rolled(x, shift, axis)
    if found is not None:
        return found
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    axes, shifts = axes_of(axis), axes_of(shift, "shift")
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        msg = f"roll: {len(shifts)} shifts for {len(axes)} axes; they must be as many"
        raise ValueError(msg)
    moved = dict.fromkeys(range(x.ndim), 0)
    for places, item in zip(shifts, axes, strict=True):
        moved[axis_index(item, x.ndim)] += places
    out = empty_like(x)
    if not x.size:
        return out
    # Each axis is cut in two: the part that moves up, and the part that wraps around.
    cuts = []
    for item, places in moved.items():
        cut = places % x.shape[item]
        whole = [(slice(cut, None), slice(None, x.shape[item] - cut))]
        cuts.append(whole + [(slice(None, cut), slice(-cut, None))] * bool(cut))
    for pieces in product(*cuts):
        target, source = zip(*pieces, strict=True) if pieces else ((), ())
        out[target] = x[source]
    return out


def tile(x: Array, repetitions: Sequence[int], /) -> NDArray:
    """Return copies of an array laid side by side.

    Parameters
    ----------
    x : NDArray
    repetitions : tuple of int
        Number of copies along each axis, aligned at the last axis. Missing lengths and
        missing repetitions count as 1.

    Returns
    -------
    NDArray
        A new array with ``max(x.ndim, len(repetitions))`` axes.

    Raises
    ------
    ValueError
        If a number is negative.

    Notes
    -----
    Array API 2025.12, `tile`.

    Examples
    --------
    >>> import ndx
    >>> ndx.tile(ndx.asarray([1, 2]), (2, 2))
    NDArray([[1, 2, 1, 2],
             [1, 2, 1, 2]])
    """
    x = argument(x, "tile")
    found = tiled(x, repetitions)
    if found is not None:
        return found
    repetitions = axes_of(repetitions, "repetitions")
    if any([count < 0 for count in repetitions]):
        msg = f"repetitions {repetitions} has a negative number; they are 0 or more"
        raise ValueError(msg)
    ndim = max(x.ndim, len(repetitions))
    counts = (1,) * (ndim - len(repetitions)) + tuple(repetitions)
    lengths = (1,) * (ndim - x.ndim) + x.shape
    if ndim + len(counts) - counts.count(1) > MOST_AXES:
        return _tile_by_axes(x, counts, lengths)
    # A new axis before each repeated one is broadcast to make the copies.
    split, wanted = [], []
    for count, length in zip(counts, lengths, strict=True):
        split += [length] if count == 1 else [1, length]
        wanted += [length] if count == 1 else [count, length]
    spread = broadcast_to(reshape(x, tuple(split)), tuple(wanted))
    pairs = zip(counts, lengths, strict=True)
    return reshape(spread, tuple([a * b for a, b in pairs]), copy=True)


def _tile_by_axes(x, counts, lengths):
    """Tile along one axis after the other, if all at once would need too many axes."""
    x, shape = reshape(x, lengths), list(lengths)
    for axis, count in enumerate(counts):
        if count != 1:
            before, after = prod(shape[:axis]), prod(shape[axis:])
            spread = broadcast_to(
                reshape(x, (before, 1, after)), (before, count, after)
            )
            shape[axis] *= count
            x = reshape(spread, tuple(shape), copy=True)
    return x

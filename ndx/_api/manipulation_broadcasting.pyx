"""Broadcasting arrays and shapes against one another."""

from ndx._array.storage cimport BaseArray, new_view, set_layout, strided
from ndx._compute.numpy_calls cimport argument
from ndx._lib.layout cimport (
    MAXDIMS, Strided, broadcast_into, broadcast_strides, count_elements, parse_shape,
    shape_tuple,
)

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]


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

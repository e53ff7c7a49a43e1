"""Creation functions of the standard that make matrices and grids."""

from libc.string cimport memset

from ndx._array.pinning cimport Operands, compute_on, put
from ndx._array.storage cimport BaseArray, new_empty, new_view, set_layout
from ndx._compute.copies cimport LARGE, copy, copy_into, fill
from ndx._compute.numpy_calls cimport argument
from ndx._lib.dtypes cimport itemsize_of
from ndx._lib.layout cimport MAXDIMS, Walk, check_axes, read_int, shape_tuple

from ndx._api.creation import placed, zeros
from ndx._compute.numpy_calls import as_int, on_device
from ndx._lib.device import CPU

__all__ = ["eye", "meshgrid", "tril", "triu"]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0,
        dtype: DTypeLike = None, device: DeviceLike = None) -> NDArray:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows : int
        Number of rows.
    n_cols : int, optional
        Number of columns. Default: `n_rows`.
    k : int
        The diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype, optional
        Default: float64.
    device : Device or str, optional
        Default: ``"cpu"``.

    Returns
    -------
    NDArray, shape (n_rows, n_cols)

    Notes
    -----
    Array API 2025.12, `eye`.

    Examples
    --------
    >>> import ndx
    >>> ndx.eye(2)
    NDArray([[1., 0.],
             [0., 1.]])
    """
    n_rows = as_int(n_rows, "n_rows")
    x = zeros((n_rows, n_rows if n_cols is None else n_cols), dtype=dtype,
              device=CPU)
    k = as_int(k, "k")
    if -(<BaseArray>x).shape[0] < k < (<BaseArray>x).shape[1]:
        fill(diagonal_of(x, k), 1)
    return placed(x, device)


cdef BaseArray diagonal_of(BaseArray x, Py_ssize_t k):
    """Return a view of a diagonal of a matrix that has it."""
    cdef BaseArray view = new_view(x, 1)
    cdef Py_ssize_t rows = x.shape[0] + (k if k < 0 else 0)
    view.shape[0] = min(rows, x.shape[1] - (k if k > 0 else 0))
    view.strides[0] = x.strides[0] + x.strides[1]
    view.offset += k * x.strides[1] if k > 0 else -k * x.strides[0]
    set_layout(view)
    return view


def meshgrid(*arrays: Array,
             indexing: Literal["xy", "ij"] = "xy") -> tuple[NDArray, ...]:
    """Return the coordinates of the points of a grid, from those along its axes.

    Parameters
    ----------
    *arrays : NDArray, shape (N1,), (N2,), ...
        Coordinates along each axis.
    indexing : {'xy', 'ij'}
        ``'ij'``: results of shape (N1, N2, N3, ...). ``'xy'``: with the first two axes
        swapped, (N2, N1, N3, ...).

    Returns
    -------
    tuple of NDArray
        One new array for each argument, of its dtype.

    Raises
    ------
    ValueError
        If an array has not exactly one axis, there are more than 64 arrays (the limit
        of axes), or `indexing` is unknown.

    Notes
    -----
    Array API 2025.12, `meshgrid`.

    Examples
    --------
    >>> import ndx
    >>> x, y = ndx.meshgrid(ndx.asarray([1, 2]), ndx.asarray([3, 4]))
    >>> x
    NDArray([[1, 2],
             [1, 2]])
    """
    cdef list found = [argument(x, "meshgrid") for x in arrays]
    cdef Py_ssize_t shape[MAXDIMS]
    cdef int ndim, i, axis
    cdef BaseArray view
    cdef list axes, grids = []
    check_axes(len(found))
    ndim = <int>len(found)
    axes = list(range(ndim))
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing={indexing!r} is unknown; valid are 'xy' and 'ij'")
    if indexing == "xy" and ndim > 1:
        axes[:2] = [1, 0]
    for i in range(ndim):
        view = found[i]
        if view.ndim != 1:
            raise ValueError(
                f"meshgrid takes arrays of one axis; argument {i} has shape "
                f"{shape_tuple(view.ndim, view.shape)}")
        shape[<int>axes[i]] = view.shape[0]
    for i in range(ndim):
        view = new_view(<BaseArray>found[i], ndim)
        for axis in range(ndim):
            view.shape[axis] = shape[axis]
            view.strides[axis] = 0
        view.strides[<int>axes[i]] = (<BaseArray>found[i]).strides[0]
        set_layout(view)
        grids.append(copy(view))
    return tuple(grids)


def tril(x: Array, /, *, k: int = 0) -> NDArray:
    """Return the lower triangle of each matrix in a stack, with zeros elsewhere.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The last diagonal kept: 0 is the main one, positive ones are above it.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `tril`.

    Examples
    --------
    >>> import ndx
    >>> ndx.tril(ndx.ones((2, 2)))
    NDArray([[1., 0.],
             [1., 1.]])
    """
    return triangle(argument(x, "tril"), read_int(k, "k"), True, "tril")


def triu(x: Array, /, *, k: int = 0) -> NDArray:
    """Return the upper triangle of each matrix in a stack, with zeros elsewhere.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The first diagonal kept: 0 is the main one, positive ones are above it.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `triu`.

    Examples
    --------
    >>> import ndx
    >>> ndx.triu(ndx.ones((2, 2)))
    NDArray([[1., 1.],
             [0., 1.]])
    """
    return triangle(argument(x, "triu"), read_int(k, "k"), False, "triu")


cdef BaseArray triangle(BaseArray x, Py_ssize_t k, bint lower, str name):
    cdef BaseArray result
    cdef Operands operands
    cdef Triangle triangle
    if x.ndim < 2:
        raise ValueError(
            f"{name} is for arrays of 2 axes or more, this one has {x.ndim}")
    if x.block.device:
        return on_device(name, x, k=k)
    result = new_empty(x.dtype, x.ndim, x.shape)
    copy_into(result, x)
    if result.size == 0:
        return result
    triangle.rows = x.shape[x.ndim - 2]
    triangle.columns = x.shape[x.ndim - 1]
    triangle.count = result.size // triangle.columns
    triangle.itemsize = itemsize_of[x.dtype]
    triangle.lower = lower
    # All diagonals beyond the corners are alike. The bounds keep sums from overflowing.
    triangle.diagonal = max(-triangle.rows - 1, min(k, triangle.columns + 1))
    operands.count = 0
    put(&operands, result)
    compute_on(&operands, NULL, clear_triangle, &triangle, result.size >= LARGE)
    return result


# The elements of contiguous matrices that become 0.
cdef struct Triangle:
    Py_ssize_t rows              # of one matrix
    Py_ssize_t columns
    Py_ssize_t count             # rows of all matrices
    Py_ssize_t diagonal
    Py_ssize_t itemsize
    bint lower                   # the lower triangle is kept


cdef void clear_triangle(void *arg, char **data, const Walk *walk) noexcept nogil:
    cdef const Triangle *of = <const Triangle *>arg
    cdef Py_ssize_t row, first, stop
    for row in range(of.count):
        first = row % of.rows + of.diagonal + of.lower
        first = max(<Py_ssize_t>0, min(first, of.columns))
        stop = of.columns
        if not of.lower:
            stop = first
            first = 0
        memset(data[0] + (row * of.columns + first) * of.itemsize, 0,
               (stop - first) * of.itemsize)

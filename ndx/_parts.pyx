"""Parts of arrays: of complex numbers, and of matrices."""

from libc.string cimport memset

from ndx._array cimport BaseArray, new_empty, new_view, same_view, set_layout
from ndx._dtypes cimport (
    COMPLEX64, FLOAT32, FLOAT64, KIND_COMPLEX, dtype_object, itemsize_of, kind_of,
)
from ndx._engine cimport argument, layout_argument
from ndx._gil cimport Operands, compute_on, put
from ndx._layout cimport Walk, read_int
from ndx._operations cimport LARGE, copy_into

__all__ = ["imag", "real", "tril", "triu"]


cdef BaseArray part(BaseArray x, Py_ssize_t offset):
    """Return the real (0) or imaginary (1) parts of a complex array."""
    cdef BaseArray view = same_view(x)
    view.dtype = FLOAT32 if x.dtype == COMPLEX64 else FLOAT64
    view.offset += offset * itemsize_of[view.dtype]
    set_layout(view)
    return view


def real(x, /):
    """Return the real parts.

    Parameters
    ----------
    x : NDArray
        Of a numeric dtype.

    Returns
    -------
    NDArray
        A view of `x`, of the dtype of its parts; `x` itself if it is real.

    Notes
    -----
    Array API 2025.12, `real`.

    Examples
    --------
    >>> import ndx
    >>> ndx.real(ndx.asarray([1 + 2j]))
    NDArray([1.])
    """
    cdef BaseArray array = layout_argument(x, "real")
    return part(array, 0) if kind_of[array.dtype] == KIND_COMPLEX else array


def imag(x, /):
    """Return the imaginary parts.

    Parameters
    ----------
    x : NDArray
        Of a complex dtype.

    Returns
    -------
    NDArray
        A view of `x`, of the dtype of its parts.

    Raises
    ------
    TypeError
        If `x` is not complex.

    Notes
    -----
    Array API 2025.12, `imag`.

    Examples
    --------
    >>> import ndx
    >>> ndx.imag(ndx.asarray([1 + 2j]))
    NDArray([2.])
    """
    cdef BaseArray array = layout_argument(x, "imag")
    if kind_of[array.dtype] != KIND_COMPLEX:
        raise TypeError(
            f"imag takes complex dtypes, not {dtype_object(array.dtype)}")
    return part(array, 1)


def diagonal(x, /, *, offset=0):
    """Return a diagonal of each matrix of a stack.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    offset : int
        Which diagonal: 0 the main one, positive ones above it.

    Returns
    -------
    NDArray, shape (..., K)
        A view of `x`; K is the length of the diagonal, 0 beyond the corners.

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `linalg.diagonal`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.diagonal(ndx.asarray([[1, 2], [3, 4]]))
    NDArray([1, 4])
    """
    cdef BaseArray array = layout_argument(x, "diagonal")
    cdef Py_ssize_t skipped = read_int(offset, "offset"), rows, columns, length
    cdef BaseArray view
    cdef int i, last = array.ndim - 1
    if last < 1:
        raise ValueError(
            f"diagonal is for arrays of 2 axes or more, this one has {array.ndim}")
    rows = array.shape[last - 1]
    columns = array.shape[last]
    if skipped >= 0:
        length = min(rows, columns - skipped)
    else:
        length = min(rows + skipped, columns)
    view = new_view(array, last)
    for i in range(last - 1):
        view.shape[i] = array.shape[i]
        view.strides[i] = array.strides[i]
    view.shape[last - 1] = max(length, 0)
    view.strides[last - 1] = array.strides[last - 1] + array.strides[last]
    if length > 0:
        view.offset += (skipped * array.strides[last] if skipped >= 0
                        else -skipped * array.strides[last - 1])
    set_layout(view)
    return view


def tril(x, /, *, k=0):
    """Return the lower triangle of each matrix of a stack, the rest zeros.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The last diagonal kept: 0 the main one, positive ones above it.

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


def triu(x, /, *, k=0):
    """Return the upper triangle of each matrix of a stack, the rest zeros.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    k : int
        The first diagonal kept: 0 the main one, positive ones above it.

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
    result = new_empty(x.dtype, x.ndim, x.shape)
    copy_into(result, x)
    if result.size == 0:
        return result
    triangle.rows = x.shape[x.ndim - 2]
    triangle.columns = x.shape[x.ndim - 1]
    triangle.count = result.size // triangle.columns
    triangle.itemsize = itemsize_of[x.dtype]
    triangle.lower = lower
    # Beyond the corners all diagonals are alike; and no sum below can overflow.
    triangle.diagonal = max(-triangle.rows - 1, min(k, triangle.columns + 1))
    operands.count = 0
    put(&operands, result)
    compute_on(&operands, NULL, clear_triangle, &triangle, result.size >= LARGE)
    return result


# Which elements of contiguous matrices become 0.
cdef struct Triangle:
    Py_ssize_t rows              # of a matrix
    Py_ssize_t columns
    Py_ssize_t count             # of the rows of all matrices
    Py_ssize_t diagonal
    Py_ssize_t itemsize
    bint lower                   # what stays


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

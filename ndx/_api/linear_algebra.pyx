"""Linear algebra of the main namespace; `ndx.linalg` has the rest."""

from ndx._array.storage cimport BaseArray, is_array
from ndx._compute.elementwise cimport operand_error
from ndx._compute.loops cimport Ufunc, find_ufunc
from ndx._compute.matmul cimport matmul as multiply_matrices, vecdot as multiply_vectors
from ndx._compute.numpy_calls cimport argument
from ndx._lib.layout cimport read_int
from ndx._methods.numpy_layout cimport diagonal_view

from ndx._api.manipulation import matrix_transpose, permute_dims, reshape
from ndx._compute.numpy_calls import as_int, axes_of, axis_index

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

cdef Ufunc MATMUL = find_ufunc("matmul")
cdef Ufunc VECDOT = find_ufunc("vecdot")


def matmul(x1: Array, x2: Array, /, *, out: NDArray | None = None) -> NDArray:
    """Return the matrix product.

    Parameters
    ----------
    x1 : NDArray, shape (..., M, K) or (K,)
    x2 : NDArray, shape (..., K, N) or (K,)
        Stacks of matrices broadcast. A vector is a row on the left, and a column on
        the right.
    out : NDArray, optional
        Receives the result, whose shape and dtype it must have. It may overlap the
        operands, which are then copied.

    Returns
    -------
    NDArray, shape (..., M, N)
        Of the promoted dtype; without M or N for a vector.

    Raises
    ------
    TypeError
        If an operand is not an array.
    ValueError
        If the shapes don't match, or an operand has no axes.

    Notes
    -----
    Array API 2025.12, `matmul`.

    Examples
    --------
    >>> import ndx
    >>> ndx.matmul(ndx.asarray([[1, 2], [3, 4]]), ndx.asarray([1, 1]))
    NDArray([3, 7])
    """
    if out is not None and not is_array(out):
        raise TypeError(f"out must be an NDArray, not {type(out).__name__}")
    result = multiply_matrices(x1, x2, out)
    if result is NotImplemented:
        raise operand_error(MATMUL, x1, x2)
    return result


def tensordot(x1: Array, x2: Array, /, *,
              axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> NDArray:
    """Return the sum of products over axes of two arrays.

    Parameters
    ----------
    x1, x2 : NDArray
    axes : int, or pair of sequences of int
        The axes of `x1` and those of `x2` to sum over, in pairs of equal lengths. An
        int n stands for the last n axes of `x1` and the first n of `x2`.

    Returns
    -------
    NDArray
        Its axes are the other axes of `x1`, then those of `x2`.

    Raises
    ------
    ValueError
        If axes of a pair differ in length, are out of range or named twice.

    Notes
    -----
    Array API 2025.12, `tensordot`. Computed as one matrix product.

    Examples
    --------
    >>> import ndx
    >>> ndx.tensordot(ndx.ones((2, 3)), ndx.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    cdef object a = argument(x1, "tensordot")
    cdef object b = argument(x2, "tensordot")
    if hasattr(axes, "__index__"):
        axes = as_int(axes, "axes")
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise ValueError(
                f"tensordot: axes={axes} is out of range for arrays of {a.ndim} and "
                f"{b.ndim} axes; valid are 0 to {min(a.ndim, b.ndim)}")
        axes = (range(a.ndim - axes, a.ndim), range(axes))
    try:
        first, second = axes
    except (TypeError, ValueError):
        raise TypeError(
            "tensordot: axes must be an int or a pair of sequences of ints, not "
            f"{axes!r}") from None
    a_axes = [axis_index(axis, a.ndim) for axis in axes_of(first, "axes")]
    b_axes = [axis_index(axis, b.ndim) for axis in axes_of(second, "axes")]
    if len(set(a_axes)) < len(a_axes) or len(set(b_axes)) < len(b_axes):
        raise ValueError(f"tensordot: axes {axes} name an axis twice")
    lengths = [a.shape[axis] for axis in a_axes]
    if lengths != [b.shape[axis] for axis in b_axes]:
        raise ValueError(
            f"tensordot: axes {a_axes} of shape {a.shape} and {b_axes} of shape "
            f"{b.shape} differ in number or lengths")
    a_rest = [axis for axis in range(a.ndim) if axis not in a_axes]
    b_rest = [axis for axis in range(b.ndim) if axis not in b_axes]
    rows = tuple([a.shape[axis] for axis in a_rest])
    columns = tuple([b.shape[axis] for axis in b_rest])
    count = product(lengths)
    left = reshape(permute_dims(a, a_rest + a_axes), (product(rows), count))
    right = reshape(permute_dims(b, b_axes + b_rest), (count, product(columns)))
    return reshape(matmul(left, right), rows + columns)


cdef Py_ssize_t product(object lengths) except -1:
    cdef Py_ssize_t result = 1
    for length in lengths:
        result *= length
    return result


def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> NDArray:
    """Return the dot products of vectors, the first ones conjugated.

    Parameters
    ----------
    x1, x2 : NDArray
        Of equal lengths along `axis`; the other axes broadcast.
    axis : int
        In ``[-N, N - 1]``, where N is the smaller number of axes; the standard has the
        negative ones only. Each array's axes are counted by themselves.

    Returns
    -------
    NDArray
        Of the broadcast shape without `axis`, and of the promoted dtype.

    Raises
    ------
    ValueError
        If `axis` is out of range, or the lengths differ.

    Notes
    -----
    Array API 2025.12, `vecdot`.

    Examples
    --------
    >>> import ndx
    >>> ndx.vecdot(ndx.asarray([[1, 2], [3, 4]]), ndx.asarray([1, 1]))
    NDArray([3, 7])
    """
    result = multiply_vectors(x1, x2, axis)
    if result is NotImplemented:
        raise operand_error(VECDOT, x1, x2)
    return result


def diagonal(x: Array, /, *, offset: int = 0) -> NDArray:
    """Return a diagonal of each matrix in a stack.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    offset : int
        The diagonal: 0 is the main one, positive ones are above it.

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
    cdef BaseArray array = argument(x, "diagonal")
    cdef Py_ssize_t skipped = read_int(offset, "offset")
    if array.ndim < 2:
        raise ValueError(
            f"diagonal is for arrays of 2 axes or more, this one has {array.ndim}")
    return diagonal_view(array, skipped)

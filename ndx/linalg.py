"""Linear algebra: the extension `linalg` of the standard.

The last two axes are matrices; leading axes make stacks of them. NumPy computes the
functions without a loop of their own, with results in memory of the current backend.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ndx._api.elementwise import multiply, subtract
from ndx._api.linalg_decompositions import (
    cholesky,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    matrix_rank,
    pinv,
    qr,
    svd,
    svdvals,
)
from ndx._api.linear_algebra import (
    diagonal,
    matmul,
    matrix_transpose,
    tensordot,
    vecdot,
)
from ndx._api.manipulation import expand_dims, stack, unstack
from ndx._api.missing_names import missing_name
from ndx._api.public import name_functions
from ndx._api.statistical import sum as _sum
from ndx._compute.gufuncs import linalg
from ndx._compute.matmul import euclidean_norm
from ndx._compute.numpy_calls import argument, as_int, axes_of, axis_index, call
from ndx._lib.device import CPU

if TYPE_CHECKING:
    from typing import Literal

    from ndx._typing import Array, Axes, DTypeLike, NDArray, SlogdetResult

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> NDArray:
    """Return the cross products of vectors of three elements.

    Parameters
    ----------
    x1, x2 : NDArray
        Numeric, of length 3 along `axis`; the other axes broadcast.
    axis : int
        In ``[-N, -1]``, where N is the smaller number of axes.

    Returns
    -------
    NDArray, the broadcast shape
        Of the promoted dtype.

    Raises
    ------
    ValueError
        If a length is not 3, or `axis` is out of range.

    Notes
    -----
    Array API 2025.12, `linalg.cross`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.cross(ndx.asarray([1, 0, 0]), ndx.asarray([0, 1, 0]))
    NDArray([0, 0, 1])
    """
    x1, x2 = argument(x1, "cross"), argument(x2, "cross")
    axis = as_int(axis, "axis")
    lengths = [x.shape[axis_index(axis, x.ndim)] for x in (x1, x2)]
    if lengths != [3, 3]:
        msg = f"cross: axis {axis} has lengths {lengths}; both must be 3"
        raise ValueError(msg)
    a, b = unstack(x1, axis=axis), unstack(x2, axis=axis)
    parts = [
        subtract(multiply(a[i], b[j]), multiply(a[j], b[i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    return stack(parts, axis=axis)


def det(x: Array, /) -> NDArray:
    """Return the determinants of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    NDArray, shape (...)

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square.

    Notes
    -----
    Array API 2025.12, `linalg.det`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.det(2.0 * ndx.eye(2))
    NDArray(4.)
    """
    return linalg("det", argument(x, "det"))


def inv(x: Array, /) -> NDArray:
    """Return the inverses of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    NDArray, shape (..., M, M)

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular or not square.

    Notes
    -----
    Array API 2025.12, `linalg.inv`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.inv(2.0 * ndx.eye(2))
    NDArray([[0.5, 0. ],
             [0. , 0.5]])
    """
    return linalg("inv", argument(x, "inv"))


def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> NDArray:
    """Return the norms of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.
    keepdims : bool
        Whether to keep the two axes, with length 1.
    ord : {'fro', 'nuc', 1, -1, 2, -2, inf, -inf}
        Frobenius, nuclear, sums of columns (1) or rows (inf), singular values (2).

    Returns
    -------
    NDArray, shape (...)
        Real.

    Raises
    ------
    ValueError
        If there is no such norm, or `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `linalg.matrix_norm`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.matrix_norm(ndx.asarray([[3.0, 4.0]]))
    NDArray(5.)
    """
    x = argument(x, "matrix_norm")
    if ord == "fro" and x.ndim > 1:
        found = euclidean_norm(x, (x.ndim - 2, x.ndim - 1), bool(keepdims))
        if found is not None:
            return found
    return call("linalg.matrix_norm", x, keepdims=keepdims, ord=ord)


def matrix_power(x: Array, n: int, /) -> NDArray:
    """Return powers of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.
    n : int
        The power. A negative one is a power of the inverse.

    Returns
    -------
    NDArray, shape (..., M, M)

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or `n` is negative and a matrix is singular.

    Notes
    -----
    Array API 2025.12, `linalg.matrix_power`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.matrix_power(ndx.asarray([[1.0, 1.0], [0.0, 1.0]]), 3)
    NDArray([[1., 3.],
             [0., 1.]])
    """
    x, n = argument(x, "matrix_power"), as_int(n, "n")
    if n < 2 or x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.device != CPU:
        return call("linalg.matrix_power", x, n)
    if n == 3:
        return matmul(matmul(x, x), x)
    power = result = None
    while n:
        power = x if power is None else matmul(power, power)
        n, odd = divmod(n, 2)
        if odd:
            result = power if result is None else matmul(result, power)
    return result


def outer(x1: Array, x2: Array, /) -> NDArray:
    """Return the products of each element of a vector with each of another.

    Parameters
    ----------
    x1 : NDArray, shape (M,)
    x2 : NDArray, shape (N,)
        Numeric.

    Returns
    -------
    NDArray, shape (M, N)
        Of the promoted dtype.

    Raises
    ------
    ValueError
        If an array does not have exactly one axis.

    Notes
    -----
    Array API 2025.12, `linalg.outer`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.outer(ndx.asarray([1, 2]), ndx.asarray([3, 4]))
    NDArray([[3, 4],
             [6, 8]])
    """
    x1, x2 = argument(x1, "outer"), argument(x2, "outer")
    if x1.ndim != 1 or x2.ndim != 1:
        msg = f"outer takes two vectors, not arrays of {x1.ndim} and {x2.ndim} axes"
        raise ValueError(msg)
    return multiply(expand_dims(x1, 1), x2)


def slogdet(x: Array, /) -> SlogdetResult:
    """Return the signs and the logarithms of determinants of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    SlogdetResult
        A named tuple of `sign`, shape (...), of the dtype of `x`, and `logabsdet`,
        shape (...), real: ``-inf`` where the determinant is 0.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square.

    Notes
    -----
    Array API 2025.12, `linalg.slogdet`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.slogdet(-ndx.eye(1)).sign
    NDArray(-1.)
    """
    return linalg("slogdet", argument(x, "slogdet"))


def solve(x1: Array, x2: Array, /) -> NDArray:
    """Return the solutions of systems of linear equations.

    Parameters
    ----------
    x1 : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.
    x2 : NDArray, shape (M,) or (..., M, K)
        Right-hand sides; the stacks broadcast.

    Returns
    -------
    NDArray, shape (..., M) or (..., M, K)
        x with ``x1 @ x = x2``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is singular or not square.

    Notes
    -----
    Array API 2025.12, `linalg.solve`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.solve(2.0 * ndx.eye(2), ndx.asarray([2.0, 4.0]))
    NDArray([1., 2.])
    """
    return linalg("solve", argument(x1, "solve"), argument(x2, "solve"))


def trace(x: Array, /, *, offset: int = 0, dtype: DTypeLike = None) -> NDArray:
    """Return the sums of a diagonal of each matrix in a stack.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
    offset : int
        The diagonal: 0 is the main one, positive ones are above it.
    dtype : dtype, optional
        Dtype of the sum. Default: as for `ndx.sum`.

    Returns
    -------
    NDArray, shape (...)

    Raises
    ------
    ValueError
        If `x` has fewer than two axes.

    Notes
    -----
    Array API 2025.12, `linalg.trace`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.trace(ndx.asarray([[1, 2], [3, 4]]))
    NDArray(5)
    """
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> NDArray:
    """Return the norms of vectors.

    Parameters
    ----------
    x : NDArray
        Floating-point; integers and bools are computed in float64.
    axis : int or tuple of int, optional
        Axes whose elements make a vector, each in ``[-x.ndim, x.ndim)``. Default: all.
    keepdims : bool
        Whether to keep the axes, with length 1.
    ord : int or float
        The order p of ``sum(abs(x) ** p) ** (1 / p)``. inf and -inf: the largest and
        the smallest magnitude. 0: the number of elements that are not 0.

    Returns
    -------
    NDArray
        Real.

    Raises
    ------
    ValueError
        If an axis is out of range or named twice.

    Notes
    -----
    Array API 2025.12, `linalg.vector_norm`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.vector_norm(ndx.asarray([3.0, 4.0]))
    NDArray(5.)
    """
    x = argument(x, "vector_norm")
    if type(ord) is int and ord == 2 and (axis is None or type(axis) is int):
        found = euclidean_norm(x, axis, bool(keepdims))
        if found is not None:
            return found
    if axis is not None:
        axes = tuple(axis_index(item, x.ndim) for item in axes_of(axis))
        axis = axes[0] if len(axes) == 1 else axes
    return call("linalg.vector_norm", x, axis=axis, keepdims=keepdims, ord=ord)


def __dir__():
    return __all__


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name):
        raise missing_name(__name__, name)


name_functions(globals())

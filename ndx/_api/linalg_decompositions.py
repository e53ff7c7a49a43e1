"""Decompositions of matrices, for `ndx.linalg`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.linalg import LinAlgError

from ndx._api.data_types import astype, finfo, float64, result_type
from ndx._api.elementwise import conj, reciprocal
from ndx._api.linear_algebra import matmul, matrix_transpose
from ndx._api.manipulation import expand_dims
from ndx._api.searching import count_nonzero, where
from ndx._api.statistical import max as _max
from ndx._compute.gufuncs import linalg
from ndx._compute.numpy_calls import argument, call
from ndx._lib.device import CPU

if TYPE_CHECKING:
    from typing import Literal

    from ndx._typing import Array, EighResult, EigResult, NDArray, QRResult, SVDResult

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "matrix_rank",
    "pinv",
    "qr",
    "svd",
    "svdvals",
]


def cholesky(x: Array, /, *, upper: bool = False) -> NDArray:
    """Return the Cholesky factors of positive-definite matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Hermitian; only one triangle is read. Integers and bools are computed in
        float64.
    upper : bool
        Whether to return U with ``x = conj(U).mT @ U``, instead of L with
        ``x = L @ conj(L).mT``.

    Returns
    -------
    NDArray, shape (..., M, M)

    Raises
    ------
    numpy.linalg.LinAlgError
        If a matrix is not positive-definite, or not square.

    Notes
    -----
    Array API 2025.12, `linalg.cholesky`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.cholesky(ndx.asarray([[4.0, 2.0], [2.0, 2.0]]))
    NDArray([[2., 0.],
             [1., 1.]])
    """
    return linalg("cholesky", argument(x, "cholesky"), upper=upper)


def eig(x: Array, /) -> EigResult:
    """Return the eigenvalues and eigenvectors of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    EigResult
        A named tuple of `eigenvalues`, shape (..., M), and `eigenvectors`, the columns
        of shape (..., M, M); complex, of the precision of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.eig`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.eig(2.0 * ndx.eye(2)).eigenvalues
    NDArray([2.+0.j, 2.+0.j])
    """
    x = argument(x, "eig")
    values, vectors = found = call("linalg.eig", x)
    dtype = result_type(x, 1j)
    return type(found)(
        astype(values, dtype, copy=False), astype(vectors, dtype, copy=False)
    )


def eigh(x: Array, /) -> EighResult:
    """Return the eigenvalues and eigenvectors of Hermitian matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Hermitian; only one triangle is read. Integers and bools are computed in
        float64.

    Returns
    -------
    EighResult
        A named tuple of `eigenvalues`, shape (..., M), real and ascending, and
        `eigenvectors`, the orthonormal columns of shape (..., M, M).

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.eigh`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.eigh(2.0 * ndx.eye(2)).eigenvalues
    NDArray([2., 2.])
    """
    return linalg("eigh", argument(x, "eigh"))


def eigvals(x: Array, /) -> NDArray:
    """Return the eigenvalues of square matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    NDArray, shape (..., M)
        Complex, of the precision of `x`.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.eigvals`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.eigvals(2.0 * ndx.eye(2))
    NDArray([2.+0.j, 2.+0.j])
    """
    x = argument(x, "eigvals")
    return astype(call("linalg.eigvals", x), result_type(x, 1j), copy=False)


def eigvalsh(x: Array, /) -> NDArray:
    """Return the eigenvalues of Hermitian matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, M)
        Hermitian; only one triangle is read. Integers and bools are computed in
        float64.

    Returns
    -------
    NDArray, shape (..., M)
        Real, ascending.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrices are not square, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.eigvalsh`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.eigvalsh(2.0 * ndx.eye(2))
    NDArray([2., 2.])
    """
    return linalg("eigvalsh", argument(x, "eigvalsh"))


def matrix_rank(x: Array, /, *, rtol: Array | float | None = None) -> NDArray:
    """Return the ranks of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.
    rtol : float or NDArray, shape (...), optional
        Singular values up to `rtol` times the largest count as 0. Default: ``max(M, N)
        * eps``.

    Returns
    -------
    NDArray of int64, shape (...)

    Raises
    ------
    numpy.linalg.LinAlgError
        If `x` has fewer than two axes, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.matrix_rank`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.matrix_rank(ndx.ones((3, 3)))
    NDArray(1)
    """
    x = _matrices(x, "matrix_rank")
    if not x.size and x.device == CPU:
        # Before 2.4 NumPy looks for the largest value of none.
        least = rtol[..., None] if getattr(rtol, "shape", ()) else rtol or 0.0
        return count_nonzero(svdvals(x) > least, axis=-1)
    if rtol is None and _has_elements(x):
        s = svdvals(x)
        least = _max(s, axis=-1, keepdims=True) * _relative_tolerance(x.shape, s)
        return count_nonzero(s > least, axis=-1)
    return call("linalg.matrix_rank", _shortened(x), rtol=rtol)


def pinv(x: Array, /, *, rtol: Array | float | None = None) -> NDArray:
    """Return the Moore-Penrose pseudo-inverses of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.
    rtol : float or NDArray, shape (...), optional
        Singular values up to `rtol` times the largest count as 0. Default: ``max(M, N)
        * eps``.

    Returns
    -------
    NDArray, shape (..., N, M)

    Raises
    ------
    numpy.linalg.LinAlgError
        If `x` has fewer than two axes, or the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.pinv`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.pinv(2.0 * ndx.eye(2))
    NDArray([[0.5, 0. ],
             [0. , 0.5]])
    """
    x = _matrices(x, "pinv")
    if x.dtype.kind not in "fc":
        # NumPy needs the precision of the dtype, and integer dtypes have none.
        x = astype(x, float64)
    if rtol is None and _has_elements(x):
        u, s, vh = svd(conj(x), full_matrices=False)
        least = _max(s, axis=-1, keepdims=True) * _relative_tolerance(x.shape, s)
        inverses = where(s > least, reciprocal(s), 0.0)
        scaled = expand_dims(inverses, -1) * matrix_transpose(u)
        return matmul(matrix_transpose(vh), scaled)
    return call("linalg.pinv", x, rtol=rtol)


def qr(x: Array, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """Return the QR factors of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.
    mode : {'reduced', 'complete'}
        ``'reduced'``: K = min(M, N). ``'complete'``: K = M.

    Returns
    -------
    QRResult
        A named tuple of `Q`, shape (..., M, K), orthonormal columns, and `R`, shape
        (..., K, N), upper triangular.

    Raises
    ------
    ValueError
        If `mode` is unknown.

    Notes
    -----
    Array API 2025.12, `linalg.qr`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.qr(ndx.ones((3, 2))).R.shape
    (2, 2)
    """
    if mode not in ("reduced", "complete"):
        msg = f"qr: mode={mode!r} is unknown; valid are 'reduced' and 'complete'"
        raise ValueError(msg)
    return linalg("qr", argument(x, "qr"), mode=mode)


def svd(x: Array, /, *, full_matrices: bool = True) -> SVDResult:
    """Return the singular value decompositions of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.
    full_matrices : bool
        Whether `U` and `Vh` are square. Otherwise `U` has K = min(M, N) columns and
        `Vh` has K rows.

    Returns
    -------
    SVDResult
        A named tuple of `U`, shape (..., M, M) or (..., M, K); `S`, shape (..., K),
        real and descending; and `Vh`, shape (..., N, N) or (..., K, N).

    Raises
    ------
    numpy.linalg.LinAlgError
        If the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.svd`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.svd(ndx.asarray([[3.0, 0.0], [0.0, 4.0]])).S
    NDArray([4., 3.])
    """
    return linalg("svd", argument(x, "svd"), full_matrices=full_matrices)


def svdvals(x: Array, /) -> NDArray:
    """Return the singular values of matrices.

    Parameters
    ----------
    x : NDArray, shape (..., M, N)
        Floating-point; integers and bools are computed in float64.

    Returns
    -------
    NDArray, shape (..., min(M, N))
        Real, descending.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the computation does not converge.

    Notes
    -----
    Array API 2025.12, `linalg.svdvals`.

    Examples
    --------
    >>> import ndx
    >>> ndx.linalg.svdvals(ndx.asarray([[3.0, 0.0], [0.0, 4.0]]))
    NDArray([4., 3.])
    """
    return linalg("svdvals", _shortened(argument(x, "svdvals")))


def _shortened(x):
    """Return matrices without rows or columns as matrices without both.

    NumPy needs memory and time for the lengths, however few elements there are.
    """
    if x.ndim >= 2 and not min(x.shape[-2:]):
        return x[..., :0, :0]
    return x


def _has_elements(x):
    return x.size and x.device == CPU


def _relative_tolerance(shape, values):
    """Return the standard's relative tolerance for singular values."""
    return max(shape[-2:]) * finfo(values.dtype).eps


def _matrices(x, name):
    """Return `x` as an array; raise LinAlgError if it has fewer than two axes."""
    x = argument(x, name)
    if x.ndim < 2:
        msg = f"{name} is for arrays of 2 axes or more, this one has {x.ndim}"
        raise LinAlgError(msg)
    return x

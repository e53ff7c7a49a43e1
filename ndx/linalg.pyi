"""Linear algebra: the extension `linalg` of the standard."""

from typing import Literal

from ndx._api.linalg_decompositions import cholesky as cholesky
from ndx._api.linalg_decompositions import eig as eig
from ndx._api.linalg_decompositions import eigh as eigh
from ndx._api.linalg_decompositions import eigvals as eigvals
from ndx._api.linalg_decompositions import eigvalsh as eigvalsh
from ndx._api.linalg_decompositions import matrix_rank as matrix_rank
from ndx._api.linalg_decompositions import pinv as pinv
from ndx._api.linalg_decompositions import qr as qr
from ndx._api.linalg_decompositions import svd as svd
from ndx._api.linalg_decompositions import svdvals as svdvals
from ndx._api.linear_algebra import diagonal as diagonal
from ndx._api.linear_algebra import matmul as matmul
from ndx._api.linear_algebra import tensordot as tensordot
from ndx._api.linear_algebra import vecdot as vecdot
from ndx._api.manipulation_views import matrix_transpose as matrix_transpose
from ndx._core import NDArray
from ndx._typing import Array, Axes, DTypeLike, SlogdetResult

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

def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> NDArray: ...
def det(x: Array, /) -> NDArray: ...
def inv(x: Array, /) -> NDArray: ...
def matrix_norm(
    x: Array,
    /,
    *,
    keepdims: bool = False,
    ord: float | Literal["fro", "nuc"] | None = "fro",
) -> NDArray: ...
def matrix_power(x: Array, n: int, /) -> NDArray: ...
def outer(x1: Array, x2: Array, /) -> NDArray: ...
def slogdet(x: Array, /) -> SlogdetResult: ...
def solve(x1: Array, x2: Array, /) -> NDArray: ...
def trace(
    x: Array, /, *, offset: int = 0, dtype: DTypeLike | None = None
) -> NDArray: ...
def vector_norm(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False, ord: float = 2
) -> NDArray: ...

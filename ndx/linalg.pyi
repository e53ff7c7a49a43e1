"""Linear algebra: the extension `linalg` of the standard."""

from typing import Literal

from ndx._core import NDArray
from ndx._decompositions import cholesky as cholesky
from ndx._decompositions import eig as eig
from ndx._decompositions import eigh as eigh
from ndx._decompositions import eigvals as eigvals
from ndx._decompositions import eigvalsh as eigvalsh
from ndx._decompositions import matrix_rank as matrix_rank
from ndx._decompositions import pinv as pinv
from ndx._decompositions import qr as qr
from ndx._decompositions import svd as svd
from ndx._decompositions import svdvals as svdvals
from ndx._linear_algebra import matmul as matmul
from ndx._linear_algebra import tensordot as tensordot
from ndx._linear_algebra import vecdot as vecdot
from ndx._parts import diagonal as diagonal
from ndx._typing import Array, Axes, DTypeLike, SlogdetResult
from ndx._views import matrix_transpose as matrix_transpose

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

"""Linear algebra of the main namespace; `ndx.linalg` has the rest."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["matmul", "matrix_transpose", "tensordot", "vecdot"]

def matmul(x1: Array, x2: Array, /, *, out: NDArray | None = None) -> NDArray: ...
def matrix_transpose(x: Array, /) -> NDArray: ...
def tensordot(
    x1: Array,
    x2: Array,
    /,
    *,
    axes: int | tuple[Sequence[int], Sequence[int]] = 2,
) -> NDArray: ...
def vecdot(x1: Array, x2: Array, /, *, axis: int = -1) -> NDArray: ...
def diagonal(x: Array, /, *, offset: int = 0) -> NDArray: ...

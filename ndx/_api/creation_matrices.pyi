"""Creation functions of the standard that make matrices and grids."""

from typing import Literal

from ndx._core import NDArray
from ndx._typing import Array, DeviceLike, DTypeLike

__all__ = ["eye", "meshgrid", "tril", "triu"]

def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def meshgrid(
    *arrays: Array, indexing: Literal["xy", "ij"] = "xy"
) -> tuple[NDArray, ...]: ...
def tril(x: Array, /, *, k: int = 0) -> NDArray: ...
def triu(x: Array, /, *, k: int = 0) -> NDArray: ...

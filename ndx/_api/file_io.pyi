"""Arrays in files: saved, loaded, and opened in place."""

from os import PathLike
from typing import Literal, TypeAlias

from ndx._core import NDArray
from ndx._typing import Array, DTypeLike, Shape

__all__ = ["load", "open", "save"]

_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]

def save(path: _Path, x: Array) -> None: ...
def load(path: _Path) -> NDArray: ...
def open(
    path: _Path,
    mode: Literal["r", "r+", "w+", "c"] = "r",
    shape: Shape | None = None,
    dtype: DTypeLike | None = None,
) -> NDArray: ...

"""Indexing functions of the standard."""

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["take", "take_along_axis"]

def take(x: Array, indices: Array, /, *, axis: int | None = None) -> NDArray: ...
def take_along_axis(x: Array, indices: Array, /, *, axis: int = -1) -> NDArray: ...

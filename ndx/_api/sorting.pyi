"""Sorting functions of the standard."""

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["argsort", "sort"]

def argsort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> NDArray: ...
def sort(
    x: Array, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> NDArray: ...

"""Utility functions of the standard that are no reductions."""

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["diff"]

def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> NDArray: ...

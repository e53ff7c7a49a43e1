"""Utility functions of the standard."""

from ndx._core import NDArray
from ndx._typing import Array, Axes

__all__ = ["all", "any", "diff"]

def all(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def any(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def diff(
    x: Array,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Array | None = None,
    append: Array | None = None,
) -> NDArray: ...

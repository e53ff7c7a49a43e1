"""Manipulation functions of the standard that join arrays."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array

__all__ = ["concat", "stack"]

def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> NDArray: ...
def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> NDArray: ...

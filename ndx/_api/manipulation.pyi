"""Manipulation functions of the standard that repeat and move elements."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array, Axes

__all__ = ["repeat", "roll", "tile"]

def repeat(
    x: Array, repeats: Array | int, /, *, axis: int | None = None
) -> NDArray: ...
def roll(
    x: Array, /, shift: int | Sequence[int], *, axis: Axes | None = None
) -> NDArray: ...
def tile(x: Array, repetitions: Sequence[int], /) -> NDArray: ...

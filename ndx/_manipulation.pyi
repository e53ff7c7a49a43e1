"""Manipulation functions of the standard that make new arrays."""

from collections.abc import Sequence

from ndx._core import NDArray
from ndx._typing import Array, Axes

__all__ = ["concat", "repeat", "roll", "stack", "tile"]

def concat(arrays: Sequence[Array], /, *, axis: int | None = 0) -> NDArray: ...
def repeat(
    x: Array, repeats: Array | int, /, *, axis: int | None = None
) -> NDArray: ...
def roll(
    x: Array, /, shift: int | Sequence[int], *, axis: Axes | None = None
) -> NDArray: ...
def stack(arrays: Sequence[Array], /, *, axis: int = 0) -> NDArray: ...
def tile(x: Array, repetitions: Sequence[int], /) -> NDArray: ...

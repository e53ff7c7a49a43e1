"""Searching functions of the standard."""

from typing import Literal

from ndx._core import NDArray
from ndx._typing import Array, Axes, Operand

__all__ = ["argmax", "argmin", "count_nonzero", "nonzero", "searchsorted", "where"]

def argmax(
    x: Array, /, *, axis: int | None = None, keepdims: bool = False
) -> NDArray: ...
def argmin(
    x: Array, /, *, axis: int | None = None, keepdims: bool = False
) -> NDArray: ...
def count_nonzero(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def nonzero(x: Array, /) -> tuple[NDArray, ...]: ...
def searchsorted(
    x1: Array,
    x2: Operand,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Array | None = None,
) -> NDArray: ...
def where(condition: Array, x1: Operand, x2: Operand, /) -> NDArray: ...

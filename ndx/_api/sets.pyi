"""Set functions of the standard."""

from ndx._core import NDArray
from ndx._typing import (
    Array,
    Operand,
    UniqueAllResult,
    UniqueCountsResult,
    UniqueInverseResult,
)

__all__ = ["isin", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> NDArray: ...
def unique_all(x: Array, /) -> UniqueAllResult: ...
def unique_counts(x: Array, /) -> UniqueCountsResult: ...
def unique_inverse(x: Array, /) -> UniqueInverseResult: ...
def unique_values(x: Array, /) -> NDArray: ...

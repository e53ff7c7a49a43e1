"""Reductions of the standard."""

from ndx._core import NDArray
from ndx._typing import Array, Axes, DTypeLike

__all__ = [
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

def cumulative_prod(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> NDArray: ...
def cumulative_sum(
    x: Array,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> NDArray: ...
def max(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def mean(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def min(
    x: Array, /, *, axis: Axes | None = None, keepdims: bool = False
) -> NDArray: ...
def prod(
    x: Array,
    /,
    *,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> NDArray: ...
def std(
    x: Array,
    /,
    *,
    axis: Axes | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> NDArray: ...
def sum(
    x: Array,
    /,
    *,
    axis: Axes | None = None,
    dtype: DTypeLike | None = None,
    keepdims: bool = False,
) -> NDArray: ...
def var(
    x: Array,
    /,
    *,
    axis: Axes | None = None,
    correction: float = 0.0,
    keepdims: bool = False,
) -> NDArray: ...

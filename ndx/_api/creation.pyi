"""Creation functions of the standard that fill new arrays."""

from ndx._core import NDArray
from ndx._typing import Array, DeviceLike, DTypeLike, Scalar, Shape

__all__ = [
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

def empty(
    shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def empty_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def full(
    shape: Shape,
    fill_value: Scalar,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def full_like(
    x: Array,
    /,
    fill_value: Scalar,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def ones(
    shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def ones_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def zeros(
    shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def zeros_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...

"""Creation functions of the standard: new arrays, and arrays over others' memory."""

from typing import Any, Literal

from ndx._core import NDArray
from ndx._typing import Array, DeviceLike, DTypeLike, Scalar, Shape

__all__ = [
    "asarray",
    "empty",
    "empty_like",
    "from_dlpack",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    copy: bool | None = None,
    order: Literal["C", "F"] | None = None,
) -> NDArray: ...
def empty(
    shape: Shape, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def empty_like(
    x: Array, /, *, dtype: DTypeLike | None = None, device: DeviceLike = None
) -> NDArray: ...
def from_dlpack(
    x: Any, /, *, device: DeviceLike = None, copy: bool | None = None
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

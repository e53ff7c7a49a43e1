"""Creation functions of the standard that take data: copied, or over its memory."""

from typing import Any, Literal

from ndx._core import NDArray
from ndx._typing import DeviceLike, DTypeLike

__all__ = ["asarray", "from_dlpack"]

def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    copy: bool | None = None,
    order: Literal["C", "F"] | None = None,
) -> NDArray: ...
def from_dlpack(
    x: Any, /, *, device: DeviceLike = None, copy: bool | None = None
) -> NDArray: ...

"""Creation functions of the standard that make sequences of numbers."""

from ndx._core import NDArray
from ndx._typing import DeviceLike, DTypeLike

__all__ = ["arange", "linspace"]

def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
) -> NDArray: ...
def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> NDArray: ...

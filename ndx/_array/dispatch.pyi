"""Device dispatch: a function that meets a device's arrays asks the device's engine."""

from collections.abc import Callable

from ndx._array.engine import Engine
from ndx._lib.device import Device

__all__ = ["set_engine", "synchronize", "waitall"]

def set_engine(load: Callable[[], Engine]) -> None: ...
def synchronize(device: Device | str | None = None) -> None: ...
def waitall(*, trim: bool = False) -> None: ...

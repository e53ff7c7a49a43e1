"""Computing on a device: what meets its arrays is handed to the device's engine."""

from collections.abc import Callable
from typing import Any, final

from ndx._device import Device

__all__ = ["Function", "dispatched", "set_engine", "synchronize"]

@final
class Function:
    def __init__(self, function: Callable[..., Any], name: str, kind: str) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type) -> Any: ...

def set_engine(load: Callable[[], Callable[..., Any]]) -> None: ...
def synchronize(device: Device | str | None = None) -> None: ...
def dispatched(
    function: Callable[..., Any], name: str, module: str, kind: str = "computes"
) -> Function: ...

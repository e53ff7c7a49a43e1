"""Memory in use, its limits, and callbacks for when it is short."""

from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

from ndx._lib.collector import gc_window as gc_window
from ndx._lib.collector import periodic_gc as periodic_gc
from ndx._lib.device import Device
from ndx._workspaces.listing import destroy_all as destroy_all
from ndx._workspaces.listing import workspace_summary as workspace_summary
from ndx._workspaces.listing import workspaces as workspaces
from ndx._workspaces.registry import debug_mode as debug_mode
from ndx._workspaces.registry import (
    default_workspace_config as default_workspace_config,
)
from ndx.backends import Backend
from ndx.backends.adaptors import Adaptor as Adaptor
from ndx.backends.adaptors import FailureCallbackAdaptor as FailureCallbackAdaptor
from ndx.backends.adaptors import LimitingAdaptor as LimitingAdaptor
from ndx.backends.adaptors import LoggingAdaptor as LoggingAdaptor
from ndx.backends.adaptors import TrackingAdaptor as TrackingAdaptor

__all__ = [
    "Adaptor",
    "Event",
    "FailureCallbackAdaptor",
    "LimitingAdaptor",
    "LoggingAdaptor",
    "MemoryInfo",
    "Statistics",
    "Trace",
    "TrackingAdaptor",
    "allocated",
    "debug_mode",
    "default_workspace_config",
    "destroy_all",
    "empty_cache",
    "gc_window",
    "headroom",
    "info",
    "limit",
    "limits",
    "max_allocated",
    "max_reserved",
    "on_oom",
    "periodic_gc",
    "profile",
    "profile_report",
    "record",
    "remove_on_oom",
    "reserve",
    "reserved",
    "reset_peak",
    "set_limit",
    "snapshot",
    "statistics",
    "stats",
    "summary",
    "trim",
    "workspace_summary",
    "workspaces",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

class MemoryInfo(NamedTuple):
    free: int | None
    total: int | None
    reserved: int
    allocated: int
    limit: int | None

@dataclass
class Statistics:
    current_bytes: int = 0
    current_count: int = 0
    peak_bytes: int = 0
    total_count: int = 0

class statistics:
    def __init__(self, backend: str | Backend | None = None) -> None: ...
    def __enter__(self) -> Statistics: ...
    def __exit__(
        self, *exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...

class profile:
    def __init__(self, name: str, backend: str | Backend | None = None) -> None: ...
    def __enter__(self) -> Statistics: ...
    def __exit__(
        self, *exception: type[BaseException] | BaseException | TracebackType | None
    ) -> None: ...
    def __call__(self, function: _Function) -> _Function: ...

def profile_report(clear: bool = False) -> str: ...
def stats(backend: str | Backend | None = None) -> dict[str, int | None]: ...
def allocated(backend: str | Backend | None = None) -> int: ...
def reserved(backend: str | Backend | None = None) -> int: ...
def max_allocated(backend: str | Backend | None = None) -> int: ...
def max_reserved(backend: str | Backend | None = None) -> int: ...
def reset_peak(backend: str | Backend | None = None) -> None: ...
def trim(backend: str | Backend | None = None) -> int: ...
def empty_cache(backend: str | Backend | None = None) -> int: ...
def info(backend: str | Backend | None = None) -> MemoryInfo: ...
def summary(backend: str | Backend | None = None) -> str: ...
def snapshot(backend: str | Backend | None = None) -> dict[str, Any]: ...
def on_oom(callback: Callable[[int], object]) -> None: ...
def remove_on_oom(callback: Callable[[int], object]) -> None: ...
def limit(device: Device | str | None = None) -> int | None: ...
def limits() -> dict[str, int]: ...
def set_limit(
    value: int | str | None = ...,
    *,
    process: int | str | None = ...,
    device: Device | str | None = None,
) -> None: ...
def reserve(
    nbytes: int | str, backend: str | Backend | None = None, *, touch: bool = False
) -> int: ...

class headroom:
    backend: Backend
    nbytes: int
    released_bytes: int
    def __init__(
        self, nbytes: int | str, backend: str | Backend | None = None
    ) -> None: ...
    def __enter__(self) -> headroom: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

class Event(NamedTuple):
    time: float
    kind: str
    array: int | None = None
    nbytes: int | None = None
    address: int | None = None
    backend: str | None = None
    workspace: str | None = None
    generation: int | None = None
    slot: int | None = None
    segment: int | None = None
    place: str | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    maker: str | None = None
    stack: tuple[str, ...] = ()
    thread: str | None = None
    freed: str | None = None
    allocated: int | None = None
    reserved: int | None = None

class Trace:
    def __init__(self, max_events: int = 100_000, stacks: int = 1) -> None: ...
    def __enter__(self) -> Trace: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    @property
    def events(self) -> list[Event]: ...
    @property
    def peak_bytes(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    def to_dict(self) -> dict[str, Any]: ...
    def summary(self, makers: int = 10) -> str: ...
    def save(self, path: str | PathLike[str]) -> None: ...
    def plot(self, ax: Any = None) -> Any: ...

def record(max_events: int = 100_000, stacks: int = 1) -> Trace: ...

"""What memory ndx holds: counters of each backend."""

from os import PathLike
from types import TracebackType
from typing import Any, NamedTuple

from ndx._collector import gc_window as gc_window
from ndx._collector import periodic_gc as periodic_gc
from ndx._workspaces.manager import destroy_all as destroy_all
from ndx._workspaces.manager import workspace_summary as workspace_summary
from ndx._workspaces.manager import workspaces as workspaces
from ndx._workspaces.registry import debug_mode as debug_mode
from ndx._workspaces.registry import (
    default_workspace_config as default_workspace_config,
)
from ndx.backends import Backend

__all__ = [
    "Event",
    "Trace",
    "allocated",
    "debug_mode",
    "default_workspace_config",
    "destroy_all",
    "gc_window",
    "periodic_gc",
    "record",
    "reserved",
    "reset_peak",
    "stats",
    "trim",
    "workspace_summary",
    "workspaces",
]

def stats(backend: str | Backend | None = None) -> dict[str, int | None]: ...
def allocated(backend: str | Backend | None = None) -> int: ...
def reserved(backend: str | Backend | None = None) -> int: ...
def reset_peak(backend: str | Backend | None = None) -> None: ...
def trim(backend: str | Backend | None = None) -> int: ...

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

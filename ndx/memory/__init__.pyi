"""What memory ndx holds: counters of each backend."""

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
    "allocated",
    "debug_mode",
    "default_workspace_config",
    "destroy_all",
    "gc_window",
    "periodic_gc",
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

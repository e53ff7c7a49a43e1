"""The workspace of a name, of this thread or task."""

from os import PathLike
from typing import Literal

from ndx._workspaces.config import WorkspaceConfig
from ndx._workspaces.workspace import Workspace
from ndx.backends import Backend

__all__ = ["debug_mode", "default_workspace_config", "workspace"]

def workspace(
    name: str | None = None,
    /,
    *,
    config: WorkspaceConfig | None = None,
    backend: str | Backend | None = None,
    size: int | str = ...,
    min_size: int | str = ...,
    max_size: int | str | None = ...,
    overallocation: float | None = ...,
    learn: Literal["first", "over-time", "none", "liveness"] = ...,
    cycles: int = ...,
    spill: Literal["external", "grow", "fail", "mmap", "host"] = ...,
    reset: Literal["scope", "ring"] = ...,
    slots: int | None = ...,
    path: str | bytes | PathLike[str] | PathLike[bytes] | None = ...,
    escape: Literal["raise", "detach"] = ...,
    mirror: Literal["none", "host"] = ...,
    debug: bool = ...,
) -> Workspace: ...
def default_workspace_config(
    config: WorkspaceConfig | None = None, /
) -> WorkspaceConfig: ...
def debug_mode(
    new: Literal["off", "spill", "bypass"] | None = None, /
) -> Literal["off", "spill", "bypass"]: ...

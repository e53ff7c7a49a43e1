"""Workspaces: named arenas, entered and left."""

from types import TracebackType
from typing import Literal, Self, final

from ndx._workspace_config import WorkspaceConfig
from ndx.backends import Backend

__all__ = ["Workspace", "workspace"]

@final
class Workspace:
    @property
    def name(self) -> str: ...
    @property
    def config(self) -> WorkspaceConfig: ...
    @property
    def backend(self) -> Backend: ...
    @property
    def size(self) -> int: ...
    @property
    def generation(self) -> int: ...
    @property
    def is_open(self) -> bool: ...
    def stats(self) -> dict[str, int]: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

def workspace(
    name: str | None = None,
    /,
    *,
    backend: str | Backend | None = None,
    size: int | str = ...,
    learn: Literal["first", "none"] = ...,
    overallocation: float = ...,
    spill: Literal["external", "fail"] = ...,
) -> Workspace: ...

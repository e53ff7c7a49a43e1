"""All workspaces of a thread or of the process."""

import threading

from ndx._workspaces.workspace import Workspace

__all__ = ["destroy_all", "workspace_summary", "workspaces"]

def workspaces(
    *, thread: threading.Thread | int | None = None, all_threads: bool = False
) -> list[Workspace]: ...
def destroy_all(
    *,
    thread: threading.Thread | int | None = None,
    all_threads: bool = False,
    trim: bool = True,
) -> int: ...
def workspace_summary(
    *, thread: threading.Thread | int | None = None, all_threads: bool = False
) -> str: ...

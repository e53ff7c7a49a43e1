"""The places that a role may have, and whether arrays lie there."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, TypeAlias

import ndx

__all__ = [
    "Found",
    "Place",
    "Scopes",
    "checked_name",
    "lies_in",
    "name_of",
    "parse",
    "place_of",
    "scope_of",
]

Place: TypeAlias = (
    str
    | ndx.Workspace
    | ndx.WorkspaceConfig
    | tuple[str, ndx.WorkspaceConfig | None]
    | None
)
# A place in one form: a workspace of the thread by name and config, or one workspace.
Found: TypeAlias = tuple[str, ndx.WorkspaceConfig | None] | ndx.Workspace | None


class Scopes:
    """The scopes of several places, entered together and left in reverse order."""

    def __init__(self, places: list[ndx.Workspace | None]) -> None:
        self._places = places
        self._left: list[contextlib.ExitStack] = []

    def __enter__(self) -> ndx.Workspace | None:
        last: ndx.Workspace | None = None
        with contextlib.ExitStack() as stack:
            for place in self._places:
                last = stack.enter_context(scope_of(place))
            # Only now: if an entry fails, those before it are left by the stack above.
            self._left.append(stack.pop_all())
        return last

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        return self._left.pop().__exit__(kind, error, traceback)


def scope_of(
    workspace: ndx.Workspace | None,
) -> contextlib.AbstractContextManager[ndx.Workspace | None]:
    """Return the context manager in which new arrays are made in a place."""
    return ndx.no_workspace() if workspace is None else workspace


def checked_name(role: object) -> str:
    if not isinstance(role, str):
        msg = f"a role is a str, such as 'activations', not {role!r}"
        raise TypeError(msg)
    return str(role)


def parse(role: str, place: Any) -> Found:
    """Return a place in one form."""
    if place is None or isinstance(place, ndx.Workspace):
        return place
    if isinstance(place, str):
        return (place, None)
    if isinstance(place, ndx.WorkspaceConfig):
        # Names of libraries' workspaces are kept apart from the user's by a prefix.
        return (f"roles:{role}", place)
    match place:
        case (str() as name, None | ndx.WorkspaceConfig() as config):
            return (name, config)
    msg = (
        f"{place!r} is no place for role {str(role)!r}; valid are a workspace's name, "
        "a Workspace, a WorkspaceConfig, a pair (name, WorkspaceConfig), and None for "
        "no workspace"
    )
    raise TypeError(msg)


def check_array(x: object) -> None:
    """Raise TypeError if a value is no NDArray."""
    if not isinstance(x, ndx.NDArray):
        msg = f"a role is for NDArrays, not {type(x).__name__}: make one by roles.copy"
        raise TypeError(msg)


def lies_in(x: ndx.NDArray, workspace: ndx.Workspace | None) -> bool:
    """Whether a valid array is in a workspace; for None: in none."""
    return not x.attached if workspace is None else workspace.owns(x)


def name_of(workspace: ndx.Workspace | None) -> str:
    return "no workspace" if workspace is None else f"workspace {workspace.name!r}"


def place_of(x: ndx.NDArray) -> str:
    return f"workspace {x.workspace!r}" if x.attached else "no workspace"

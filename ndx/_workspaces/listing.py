"""All workspaces of a thread or of the process: list, table, destruction."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from ndx._lib.errors import WorkspaceError
from ndx._lib.sizes import format_size
from ndx._lib.text import Text
from ndx._lib.weak import members
from ndx._workspaces.owners import all_workspaces

if TYPE_CHECKING:
    from ndx._workspaces.workspace import Workspace

__all__ = ["destroy_all", "table_of", "workspace_summary", "workspaces"]


def workspaces(
    *, thread: threading.Thread | int | None = None, all_threads: bool = False
) -> list[Workspace]:
    """Return the workspaces of a thread.

    Parameters
    ----------
    thread : threading.Thread or int, optional
        A thread, or its ``ident``. Default: the one that calls. Siblings, that were
        made for its asyncio tasks, are among them.
    all_threads : bool
        Whether to return those of all threads.

    Returns
    -------
    list of Workspace
        Sorted by thread and name.

    Raises
    ------
    TypeError
        If `thread` is no thread.

    Examples
    --------
    >>> import ndx
    >>> step = ndx.workspace("step of the example")
    >>> step in ndx.memory.workspaces()
    True
    """
    if thread is None:
        thread = threading.current_thread()
    elif isinstance(thread, int) and not isinstance(thread, bool):
        # Only running threads: the ident of a thread that has ended is used again.
        running = {each.ident: each for each in threading.enumerate()}
        thread = running.get(thread)
    elif not isinstance(thread, threading.Thread):
        msg = (
            "thread must be a threading.Thread or its ident, not "
            f"{type(thread).__name__}"
        )
        raise TypeError(msg)
    found = [
        each
        for each in members(all_workspaces)
        if all_threads or (thread is not None and each.thread is thread)
    ]
    return sorted(found, key=lambda each: (_name(each.thread), each.name, each.number))


def _state(workspace):
    if workspace.bypassed:
        return "bypassed"
    if workspace.is_open:
        return "left open" if workspace.is_left_open else "open"
    return "closed"


def _name(thread):
    return "(ended)" if thread is None else thread.name


def destroy_all(
    *,
    thread: threading.Thread | int | None = None,
    all_threads: bool = False,
    trim: bool = True,
) -> int:
    """Destroy the workspaces of a thread; those that are open are left alone.

    Not those whose thread or task has ended inside: no other end will come.

    Parameters
    ----------
    thread, all_threads
        As for `workspaces`.
    trim : bool
        Whether the memory goes back to the system; False: it stays in the pools of
        the backends.

    Returns
    -------
    int
        How many were destroyed, now or before.

    Notes
    -----
    Unlike ND4J's ``destroyAllWorkspacesForCurrentThread`` it does not run the
    collector, and can be called for other threads.

    Examples
    --------
    >>> import ndx
    >>> with ndx.workspace("step of the example", size="1KiB"):
    ...     x = ndx.ones(3)
    >>> ndx.memory.destroy_all() >= 1
    True
    """
    count = 0
    for each in workspaces(thread=thread, all_threads=all_threads):
        try:
            each.destroy(trim=trim)
        except WorkspaceError:
            # The workspace is open, or a sibling of it is.
            continue
        count += 1
    return count


_COLUMNS = {
    "size": "size",
    "offset": "offset",
    "this cycle": "cycle_bytes",
    "last": "last_cycle_bytes",
    "max": "max_cycle_bytes",
    "spilled": "spilled_bytes",
    "pinned": "pinned_bytes",
    "retired": "retired_bytes",
}


def workspace_summary(
    *, thread: threading.Thread | int | None = None, all_threads: bool = False
) -> str:
    """Return a table of workspaces and what they hold.

    Parameters
    ----------
    thread, all_threads
        As for `workspaces`.

    Returns
    -------
    str
        A line for each (and for each sibling, with its number), and one for the sum;
        sizes as people read them. The columns are those of `Workspace.stats`.

    Examples
    --------
    >>> import ndx
    >>> print(ndx.memory.workspace_summary(all_threads=True))  # doctest: +ELLIPSIS
    workspace ...
    """
    found = workspaces(thread=thread, all_threads=all_threads)
    return Text(table_of(found, with_sum=True))


def table_of(found: list[Workspace], *, with_sum: bool = False) -> str:
    """Return a table of workspaces and what they hold, as text."""
    rows = [["workspace", "thread", "state", *_COLUMNS, "cycles", "generation"]]
    total = dict.fromkeys(_COLUMNS.values(), 0)
    for each in found:
        stats = each.stats()
        state = _state(each)
        sizes = [format_size(stats[key]) for key in _COLUMNS.values()]
        counts = [str(stats["cycles"]), str(stats["generation"])]
        name = f"{each.name} ({each.number + 1})" if each.number else each.name
        rows.append([name, _name(each.thread), state, *sizes, *counts])
        for key in total:
            total[key] += stats[key]
    if with_sum:
        rows.append(["total", "", "", *map(format_size, total.values()), "", ""])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )

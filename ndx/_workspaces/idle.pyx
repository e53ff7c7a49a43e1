"""The arenas of closed workspaces: idle memory, given back when memory is short.

A workspace whose arena went starts its next cycle by taking one again, of the size that
it has learned.
"""

from ndx._arenas.arena cimport Arena
from ndx._workspaces.workspace cimport Workspace

from ndx._lib.weak import members
from ndx._workspaces.owners import all_workspaces
from ndx.backends._pressure import HeldArena, innermost, set_held_arenas

__all__ = ["held_arenas"]


cdef bint is_idle(Workspace workspace, Arena arena) noexcept:
    """Whether no block lies in an arena of a workspace, nor is about to.

    An arena that has had no cycle yet was set aside for the first. On a GPU a captured
    graph may write to an arena at any time. An arena in a file has content.
    """
    return workspace.depth == 0 and not workspace.busy and arena.size != 0 \
        and not arena.used and arena.pinned_count == 0 and arena.counts.cycles > 0 \
        and not arena.backend.device_number and arena.mirror is None \
        and arena.home is arena.backend


def held_arenas():
    """Return a `HeldArena` for each arena of a workspace that has memory."""
    cdef Workspace workspace
    cdef Arena arena
    cdef list found = []
    for workspace in members(all_workspaces):
        for arena in workspace.slots.all():
            if arena.size:
                found.append(HeldArena(
                    workspace.name, innermost(arena.chunk_backend), arena.size,
                    workspace.depth > 0, is_idle(workspace, arena),
                    releaser(workspace, arena)))
    return found


cdef object releaser(Workspace workspace, Arena arena):
    """Return the function that gives the memory of an arena back, if it is idle."""
    def release():
        cdef size_t size = arena.size
        if not is_idle(workspace, arena):
            return 0
        workspace.busy = True
        try:
            arena.drop_chunk()
        finally:
            workspace.busy = False
        return size
    return release


set_held_arenas(held_arenas)

"""Moving arrays between workspaces, and out of them."""

from cpython.object cimport PyObject

from ndx._arenas.base cimport Arena
from ndx._array cimport BaseArray, check, new_like
from ndx._context cimport current_arena, enclosing_arena, open_arena
from ndx._operations cimport copy_into

from ndx._errors import WorkspaceError


cdef BaseArray detached(BaseArray x):
    check(x)
    return x if x.block.clock == NULL else copied(x, None)


cdef BaseArray leveraged(BaseArray x):
    cdef Arena arena
    check(x)
    arena = enclosing_arena()
    if x.block.clock == NULL or (
            arena is not None and x.block.owner == <PyObject *>arena):
        return x
    return copied(x, arena)


cdef BaseArray leveraged_to(BaseArray x, object workspace, object missing):
    cdef Arena arena
    check(x)
    check_missing(missing)
    arena = open_arena(workspace)
    if x.block.clock == NULL or (
            arena is not None and x.block.owner == <PyObject *>arena):
        return x
    if arena is None:
        return without_arena(x, missing, f"workspace {workspace!r}")
    return copied(x, arena)


cdef BaseArray migrated(BaseArray x, object missing):
    cdef Arena arena
    check(x)
    check_missing(missing)
    arena = current_arena()
    if arena is None:
        return without_arena(x, missing, "a workspace")
    return copied(x, arena)


cdef BaseArray copied(BaseArray x, Arena arena):
    """Return a copy in an arena; None: detached, from the current backend."""
    cdef BaseArray result = new_like(x, x.dtype, True, arena)
    copy_into(result, x)
    return result


cdef int check_missing(object missing) except -1:
    if missing not in ("keep", "raise", "detach"):
        raise ValueError(
            f"missing={missing!r} is not valid; valid are 'keep', 'raise', 'detach'")
    return 0


cdef BaseArray without_arena(BaseArray x, object missing, str wanted):
    """Return what becomes of an array where there is no workspace for it."""
    if missing == "raise":
        raise WorkspaceError(
            f"no scope of {wanted} is open in this thread or task; enter it first, or "
            "give missing='keep' or 'detach'")
    return x if missing == "keep" or x.block.clock == NULL else copied(x, None)

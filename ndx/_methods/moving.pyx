"""Moving arrays between workspaces and out of them, and to devices."""

from cpython.object cimport PyObject

from ndx._arenas.arena cimport Arena
from ndx._array.dispatch cimport answer, engine_of
from ndx._array.storage cimport BaseArray, new_detached_like, require_usable
from ndx._compute.copies cimport copy_into
from ndx._context.context cimport Scope, current_arena, enclosing_arena, open_arena
from ndx._methods.display cimport readable

from ndx._lib.device import CPU, device_of, find_device, kind_at, number_of
from ndx._lib.errors import WorkspaceError


cdef BaseArray detached(BaseArray x):
    require_usable(x)
    return x if x.block.clock == NULL else copied(x, None)


cdef BaseArray leveraged(BaseArray x):
    cdef Arena arena
    require_usable(x)
    arena = enclosing_arena(x.block.device)
    if x.block.clock == NULL or (
            arena is not None and x.block.parent == <PyObject *>arena):
        return x
    return copied(x, arena)


cdef BaseArray leveraged_to(BaseArray x, object workspace, object missing):
    cdef Arena arena
    require_usable(x)
    check_missing(missing)
    if not isinstance(workspace, (str, Scope)):
        raise TypeError("a workspace is given by itself or by its name, not "
                        f"{type(workspace).__name__}")
    arena = open_arena(workspace)
    if x.block.clock == NULL or (
            arena is not None and x.block.parent == <PyObject *>arena):
        return x
    if arena is None:
        return without_arena(x, missing, f"workspace {workspace!r}")
    return copied(x, arena)


cdef BaseArray migrated(BaseArray x, object missing):
    cdef Arena arena
    require_usable(x)
    check_missing(missing)
    arena = current_arena(x.block.device)
    if arena is None:
        return without_arena(x, missing, "a workspace")
    return copied(x, arena)


cdef BaseArray copied(BaseArray x, Arena arena):
    """Return a copy in an arena; None: a detached copy, from the current backend."""
    cdef BaseArray result
    if arena is not None and arena.backend.device_number != x.block.device:
        raise device_error(x, arena)
    result = new_detached_like(x, arena)
    copy_into(result, x)
    return result


cdef object device_error(BaseArray x, Arena arena):
    return WorkspaceError(
        f"the array is on {str(device_of(x.block.device))!r}, and workspace "
        f"{arena.clock.name!r} on {str(arena.backend.device)!r}: bring it there first, "
        "by x.to_device(...)")


cdef int check_missing(object missing) except -1:
    if missing not in ("keep", "raise", "detach"):
        raise ValueError(
            f"missing={missing!r} is not valid; valid are 'keep', 'raise', 'detach'")
    return 0


cdef BaseArray without_arena(BaseArray x, object missing, str wanted):
    """Return the array as `missing=` asks, if there is no workspace for it."""
    if missing == "raise":
        raise WorkspaceError(
            f"no scope of {wanted} is open in this thread or task; enter it first, or "
            "give missing='keep' or 'detach'")
    return x if missing == "keep" or x.block.clock == NULL else copied(x, None)


cdef object moved_to_device(BaseArray x, object device, object stream):
    """Return an array on a device: itself if it is there, else a copy."""
    require_usable(x)
    target = find_device(device)
    if target == device_of(x.block.device):
        if stream is not None and target == CPU:
            raise ValueError(f"the CPU has no streams; got stream={stream!r}")
        return x
    device = number_of(target)
    if device and x.block.device and kind_at(device) is not kind_at(x.block.device):
        # Engines know the devices of their own kind, and the CPU.
        x = readable(x)
    engine = engine_of(device or x.block.device)
    return answer(engine, "to_device", engine.to_device(x, target, stream=stream))

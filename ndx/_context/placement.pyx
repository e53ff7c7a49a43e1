"""Which arena or backend serves new arrays on each device: the innermost scope's."""

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block, block_new
from ndx._context.context cimport (
    Context, Entry, allocate_block, arena_in, arena_of, before, default_backend_of_new,
    is_here, outer_backend, top_context,
)
from ndx.backends.base cimport Backend, devices

from ndx import backends
from ndx._lib.device import device_of, find_device, number_of

__all__ = ["current_backend"]


cdef Backend placing_backend():
    """Return the current backend, on any device, ignoring workspaces."""
    cdef Context context = top_context()
    if context is None or context.backend is None:
        return default_backend_of_new()
    return context.backend


cdef Backend place(Context context):
    """Return the backend of new arrays in a context: that of the innermost scope."""
    cdef Arena arena
    if context is not None and context.top is not None and is_here(context):
        arena = arena_in(context.top)
        if arena is not None:
            return arena.backend
    if context is None or context.backend is None:
        return default_backend_of_new()
    return context.backend


cdef int placing_device() except -1:
    """Return the number of the device of new arrays here; 0: the CPU."""
    return place(top_context()).device_number


cdef int device_of_new(object device) except -1:
    """Return the device number for a ``device=`` argument; None: that of new arrays."""
    if device is not None:
        return number_of(find_device(device))
    return placing_device() if devices.in_use else 0


cdef Arena current_arena(int device):
    """Return the arena that serves a device's new arrays; None if a backend does."""
    cdef Context context = top_context()
    if device == 0:
        return arena_of(context)
    found = find_place(context, device)
    return found if isinstance(found, Arena) else None


cdef Arena enclosing_arena(int device):
    """Return the arena of the workspace around the current one, or None."""
    cdef Context context = top_context()
    cdef Arena arena = current_arena(device), other
    cdef Entry entry
    if arena is None:
        return None
    while context is not None and is_here(context):
        entry = context.top
        while entry is not None:
            other = arena_in(entry)
            if other is not None and other is not arena and \
                    other.backend.device_number == device:
                return other
            entry = entry.lower
        context = before(context)
    return None


cdef object find_place(Context context, int device):
    """Return the innermost arena or backend of a device.

    Scopes of other devices serve their own arrays and are skipped.
    """
    cdef Entry entry
    cdef Arena found
    cdef bint outside = False
    while context is not None:
        entry = context.top if is_here(context) else None
        while entry is not None:
            found = arena_in(entry)
            if found is None:
                # An entry of `no_workspace` hides the arenas outside of it.
                outside = True
            elif not outside and found.backend.device_number == device:
                return found
            entry = entry.lower
        if context.backend is not None and context.backend.device_number == device:
            return context.backend
        context = before(context)
    if default_backend_of_new().device_number == device:
        return default_backend_of_new()
    return backends.get(device_of(device))


cdef Block *allocate_on(int device, size_t nbytes, bint zero, bint detached,
                        Arena arena, size_t room) except NULL:
    """Return a block of a device's memory, from the given or the current arena.

    Without an arena, or detached, it comes from the backend. `room` is that of the
    array's object: see `block_new`.
    """
    if arena is not None:
        return arena.allocate(nbytes, zero)
    if device == 0:
        return allocate_block(nbytes, zero, room) if not detached \
            else block_new(outer_backend(), nbytes, zero, room)
    found = find_place(top_context(), device)
    if not isinstance(found, Arena):
        return block_new(<Backend>found, nbytes, zero, 0)
    arena = <Arena>found
    if detached:
        return block_new(arena.backend, nbytes, zero, 0)
    return arena.allocate(nbytes, zero)


cdef Arena open_arena(object wanted):
    """Return the arena of an open scope, given the scope or its name; or None."""
    cdef Context context = top_context()
    cdef Entry entry
    cdef Arena arena
    while context is not None:
        entry = context.top if is_here(context) else None
        while entry is not None:
            arena = arena_in(entry)
            if arena is not None and (
                    entry.scope is wanted or arena.clock.name == wanted):
                return arena
            entry = entry.lower
        context = before(context)
    return None


def current_backend() -> Backend:
    """Return the backend that serves new arrays here, in a workspace that of its arena.

    Examples
    --------
    >>> import ndx
    >>> ndx.current_backend().name
    'host'
    """
    return place(top_context())

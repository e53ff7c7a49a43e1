"""Which backend, arena or workspace serves new arrays, for this thread or task, now."""

cimport cython
from cpython.contextvars cimport PyContextVar_New
from cpython.object cimport PyObject

import os

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport (
    Block, block_admit, block_decref, block_new, block_wrap,
)
from ndx._lib.free_threading cimport (
    ndx_get_object, ndx_keep_for_ever, ndx_replace,
)
from ndx._lib.interpreter cimport is_here
from ndx._lib.numpy_allocator cimport switch_all_numpy
from ndx._lib.unraisable cimport Refusals
from ndx.backends.base cimport Backend, devices

from ndx import backends
from ndx._blocks.evictor import Evictor
from ndx._lib.device import device_of, find_device, number_of
from ndx.backends import _pressure
from ndx.backends._budget import set_process_limit
from ndx.backends._environment import error_of, is_of_environment
from ndx.backends._pool.trim import allow_idle_thread
from ndx.backends._registry import get, set_environment

__all__ = ["current_backend", "replace_default", "set_default"]

cdef class PlainNumpy:
    """A backend that allocates the data of NumPy's new arrays."""

    def __cinit__(self, Backend backend not None):
        self.backend = backend
        self.refusals = Refusals()


cdef class Context:
    """A backend, and the entries made while it is the current one."""

    def __cinit__(self, Backend backend=None, Entry gate=None):
        self.backend = backend
        self.gate = gate


cdef class Entry:
    """One entry into a scope."""

    def __cinit__(self, Scope scope, Arena arena=None):
        self.scope = scope
        self.arena = arena


cdef class Scope:
    """Base class of scopes, which are left in the reverse order of entering."""

    cdef int left(self, Entry entry, Backend outside) except -1:
        """Act on the end of an entry that was removed from its context."""
        drop_entry(entry)

    cdef tuple peers(self):
        """Return the scopes whose entries an exit of this scope can end."""
        return (self,)

    cdef tuple owners(self):
        """Return the scopes whose lists hold entries of the peers."""
        return self.peers()

    cdef Entry last_entry(self):
        """Return the last entry that has not ended, of any thread; None without one."""
        cdef Entry found
        with cython.critical_section(self):
            found = self.top
        return found


cdef void drop_entry(Entry entry) noexcept:
    """Remove an ended entry from the list of its owner."""
    cdef Scope owner = entry.owner
    cdef Entry above
    # Threads may share a scope, and look for entries of others.
    with cython.critical_section(owner):
        above = owner.top
        if above is entry:
            owner.top = entry.before
        else:
            while above.before is not entry:
                above = above.before
            above.before = entry.before
        # This breaks the reference cycle, so that reference counting frees the entry.
        entry.before = entry.scope = entry.owner = None


variable = PyContextVar_New("ndx.context", NULL)
ndx_keep_for_ever(variable)

# Threads read these at any time, by `default`. Each owns a reference.
cdef PyObject *default_backend = <PyObject *>None     # of the CPU's arrays
cdef PyObject *default_place = <PyObject *>None       # of new arrays, on any device
cdef PyObject *default_numpy = <PyObject *>None       # `PlainNumpy`, or NumPy itself


cdef inline object default(PyObject *const *kind):
    return <object>ndx_get_object(kind)


# ---------------------------------------------------------------- serving new arrays

cdef Context before(Context context):
    """Return the context that was current before this one was entered."""
    context = context.previous
    while context is not None and context.abandoned:
        context = context.previous
    return context


cdef Backend backend_of(Context context):
    """Return the backend of the CPU's arrays in a context."""
    if context is None or context.host is None:
        return <Backend>default(&default_backend)
    return context.host


cdef Backend default_backend_of_new():
    """Return the backend of new arrays outside of all scopes."""
    return <Backend>default(&default_place)


cdef Backend outer_backend():
    """Return the current backend of the CPU, ignoring workspaces."""
    return backend_of(top_context())


cdef Arena arena_in(Entry entry):
    """Return the arena that was entered, on the CPU or on a device."""
    return entry.arena if entry.on_device is None else entry.on_device


cdef PlainNumpy plain_numpy():
    """Return the allocator of NumPy's arrays here; None: NumPy itself."""
    cdef Context context = top_context()
    if context is None or context.numpy is None:
        return <PlainNumpy>default(&default_numpy)
    return context.numpy


cdef int check_numpy(object numpy, Backend backend) except -1:
    """Raise TypeError if NumPy's arrays can't be placed as `numpy` says."""
    if numpy is not None and not isinstance(numpy, bool):
        raise TypeError(f"numpy= is a bool or None, not {type(numpy).__name__}")
    if numpy and backend.device_number:
        raise TypeError(
            f"numpy=True: NumPy can't use the memory of {backend.name!r}, a device's; "
            "give a backend of the host")
    return 0


cdef Scope scope_of(Arena arena):
    """Return the outermost scope here that entered an arena; None without one."""
    cdef Context context = top_context()
    cdef Scope found = None
    cdef Entry entry
    while context is not None:
        entry = context.top if is_here(context) else None
        while entry is not None:
            if arena_in(entry) is arena:
                found = entry.scope
            entry = entry.lower
        context = before(context)
    return found


cdef Block *allocate_block(size_t nbytes, bint zero, size_t room) except NULL:
    """Return a block from the current arena, else from the current backend.

    `room` is that of the array's object: see `block_new`.
    """
    cdef Context context = top_context()
    cdef Arena arena
    if context is None:
        return block_new(<Backend>default(&default_backend), nbytes, zero, room)
    arena = arena_of(context)
    if arena is not None:
        return arena.allocate(nbytes, zero)
    return block_new(backend_of(context), nbytes, zero, room)


cdef Backend spill_backend():
    """Return the CPU's backend for blocks that can't lie in the current arena."""
    cdef Context context = top_context()
    cdef Arena arena = arena_of(context)
    return backend_of(context) if arena is None else arena.backend


cdef Block *adopt_block(char *ptr, size_t nbytes, object memory_owner) except NULL:
    """Return a block over memory of ndx that the object `memory_owner` frees."""
    cdef Arena arena = arena_of(top_context())
    cdef Block *block = block_wrap(ptr, nbytes, False, memory_owner)
    if arena is None:
        block_admit(block, backend_of(top_context()))
    if arena is not None:
        try:
            arena.adopt(block)
        except BaseException:
            block_decref(block)
            raise
    return block


def set_default(backend: BackendLike, /, *, numpy: bool | None = None,
                **options: BackendOptions) -> Backend:
    """Let a backend serve the new arrays of all threads outside of `ndx.use`.

    Parameters
    ----------
    backend : str or ndx.backends.Backend
        One of `ndx.backends.available`, or a backend.
    numpy : bool, optional
        Whether the backend also allocates the data of NumPy's new arrays, as by
        `ndx.use`: in this thread, and in all that start from now on. False: NumPy's own
        allocator does. Default: as before.
    **options
        As for `ndx.use`.

    Returns
    -------
    ndx.backends.Backend
        The backend.

    Raises
    ------
    ValueError
        If the name is unknown or an option's value is invalid.
    TypeError
        If `numpy` is no bool, or true for the memory of a device.

    Examples
    --------
    >>> import ndx
    >>> ndx.set_default("host").name
    'host'

    >>> import numpy as np
    >>> backend = ndx.set_default("host", limit="1MiB", numpy=True)
    >>> a = np.ones(1000)
    >>> backend.stats()["allocated_bytes"]
    8064
    >>> _ = ndx.set_default("host", numpy=False)
    """
    cdef Backend found = get(backend, **options)
    check_numpy(numpy, found)
    if numpy is not None:
        switch_all_numpy(numpy)
        ndx_replace(&default_numpy, PlainNumpy(found) if numpy else None)
    ndx_replace(&default_place, found)
    if not found.device_number:
        ndx_replace(&default_backend, found)
    return found


def replace_default(before: Backend, backend: Backend, /) -> None:
    """Let a backend serve by default what another one does, where that still does.

    Unlike `ndx.set_default` it keeps what the program has chosen meanwhile. A forked
    child so replaces a backend that it can't share with its parent.

    Parameters
    ----------
    before, backend : ndx.backends.Backend
        The one that may be a default (of new arrays, of those of the CPU, or of
        NumPy's), and the one that takes its place.

    Examples
    --------
    >>> import ndx
    >>> made = ndx.backends.get("host", limit="1GiB")
    >>> before = ndx.current_backend()
    >>> ndx.memory.replace_default(before, made)
    >>> ndx.current_backend() is made
    True
    >>> ndx.memory.replace_default(made, before)
    """
    cdef PlainNumpy plain = default(&default_numpy)
    if default(&default_place) is before:
        ndx_replace(&default_place, backend)
    if default(&default_backend) is before:
        ndx_replace(&default_backend, backend)
    if plain is not None and plain.backend is before:
        ndx_replace(&default_numpy, PlainNumpy(backend))


def defaults_from_environment(environment):
    """Set the defaults from ``NDX_BACKEND``, ``NDX_LIMIT`` and ``NDX_<NAME>_<OPTION>``.

    ``NDX_IDLE_THREAD`` says whether there may be a thread for idle memory.

    Raises
    ------
    ValueError
        If a variable's value is invalid, or its name is a likely misspelling. The
        message names the variable.
    """
    # `NDX_LIMIT= program` is how shells come close to removing a variable.
    environment = {name: value for name, value in environment.items() if value}
    chosen = environment.get("NDX_BACKEND", "host")
    allow_idle_thread(environment.get("NDX_IDLE_THREAD", "1"))
    if "NDX_LIMIT" in environment:
        try:
            set_process_limit(environment["NDX_LIMIT"])
        except ValueError as error:
            raise error_of(f"NDX_LIMIT={environment['NDX_LIMIT']!r}: {error}") from None
    # The variables of "kind:1" are those of "kind".
    set_environment(environment, chosen.partition(":")[0])
    try:
        set_default(chosen)
    except (ValueError, TypeError, OSError) as error:
        if is_of_environment(error):
            raise
        raise error_of(f"NDX_BACKEND={chosen!r}: {error}") from None
    if default(&default_backend) is None:
        # The default is on a device, but the CPU's arrays need a backend, too.
        ndx_replace(&default_backend, get("host"))


_pressure.set_evictor(Evictor)
defaults_from_environment(os.environ)


# ---- Where new memory comes from -----------------------------------------------------

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
    return place(top_context()).device_number if devices.in_use else 0


cdef int named_device(object device) except -1:
    """Return the number of a device or a name."""
    return number_of(find_device(device))


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

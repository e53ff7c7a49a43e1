"""Which backend and workspace serve new arrays, for this thread or task, now."""

import os

from cpython.contextvars cimport (
    PyContextVar_Get, PyContextVar_New, PyContextVar_Set,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._memory cimport Block, block_decref, block_new, block_wrap
from ndx._numpy_handler cimport restore_numpy
from ndx._plain_numpy cimport PlainNumpy
from ndx._arenas.base cimport Arena
from ndx.backends.base cimport Backend

from ndx import backends
from ndx._budget import set_process_limit
from ndx._errors import WorkspaceError

__all__ = ["set_default"]

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        # The current contextvars.Context; NULL before its first use.
        PyObject *context
    PyThreadState *PyThreadState_Get() noexcept


cdef class Context:
    """A backend, and the scopes that were entered where it is the current one."""

    def __cinit__(self, Backend backend=None, Scope scope=None):
        self.backend = backend
        self.scope = scope


cdef class Entry:
    """One entry into a scope."""

    def __cinit__(self, Scope scope, Arena arena=None):
        self.scope = scope
        self.arena = arena


cdef class Scope:
    """Base class of what is entered and left, in reverse order."""

    cdef int left(self, Backend outside) except -1:
        """Act on the end of a scope, whose entry is gone already."""

    cdef Entry last_entry(self):
        """Return the innermost entry, wherever that is; None: unknown."""


cdef object variable = PyContextVar_New("ndx.context", NULL)
cdef Backend default_backend     # of the CPU's arrays
cdef Backend default_place       # of new arrays: the same, or a device's


# ---------------------------------------------------------------- what serves here

cdef Context top_context():
    """Return the current value of the variable; None if it has none."""
    cdef PyObject *value = NULL
    cdef Context context
    PyContextVar_Get(variable, NULL, &value)
    if value == NULL:
        return None
    context = <Context>value
    Py_DECREF(context)
    if context is not None and context.abandoned:
        return before(context)
    return context


cdef Context before(Context context):
    """Return the context that was current before one was entered."""
    context = context.previous
    while context is not None and context.abandoned:
        context = context.previous
    return context


cdef inline Backend backend_of(Context context):
    """Return the backend of the arrays that the CPU computes."""
    if context is None or context.host is None:
        return default_backend
    return context.host


cdef void *current_home() noexcept:
    """Return which contextvars.Context is the current one; only to compare."""
    return <void *>PyThreadState_Get().context


cdef bint is_here(Context context) noexcept:
    """Whether the entries of a context are those of this thread or task.

    Tasks and ``asyncio.to_thread`` run in a copy of their parent's context, and find
    the parent's value there. They must not allocate from its arena, whose cycle may
    end before they do.
    """
    return <PyObject *>context.home == PyThreadState_Get().context


cdef Arena arena_of(Context context):
    if context is None or context.top is None or not is_here(context):
        return None
    return context.top.arena


cdef Backend default_backend_of_new():
    """Return where new arrays are made outside of all scopes."""
    return default_place


cdef Backend outer_backend():
    """Return the CPU's backend that is current outside of the workspaces."""
    return backend_of(top_context())


cdef Arena arena_in(Entry entry):
    """Return the arena that was entered, a device's too."""
    return entry.arena if entry.on_device is None else entry.on_device


cdef PlainNumpy plain_numpy():
    """Return what NumPy's arrays are made by here; None: NumPy itself."""
    cdef Context context = top_context()
    return None if context is None else context.numpy


cdef Scope scope_of(Arena arena):
    """Return the first scope with an arena that was entered here; None: none was."""
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


cdef Block *allocate_block(size_t nbytes, bint zero) except NULL:
    """Return a block from the current arena or, without one, backend."""
    cdef Context context = top_context()
    cdef Arena arena
    if context is None:
        return block_new(default_backend, nbytes, zero)
    arena = arena_of(context)
    if arena is not None:
        return arena.allocate(nbytes, zero)
    return block_new(backend_of(context), nbytes, zero)


cdef Backend spill_backend():
    """Return the CPU's backend of what is made here but can't lie in an arena."""
    cdef Context context = top_context()
    cdef Arena arena = arena_of(context)
    return backend_of(context) if arena is None else arena.backend


cdef Block *allocate_detached(size_t nbytes) except NULL:
    """Return a block that no workspace reclaims, from the current backend."""
    return block_new(outer_backend(), nbytes, False)


cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL:
    """Return a block over memory of ours that another object, `keeper`, frees."""
    cdef Arena arena = arena_of(top_context())
    cdef Block *block = block_wrap(ptr, nbytes, False, keeper)
    if arena is not None:
        try:
            arena.adopt(block)
        except BaseException:
            block_decref(block)
            raise
    return block


# ----------------------------------------------------------- entering and leaving

cdef int enter_context(Context context) except -1:
    """Make a context the current one of this thread or task, and what inherits it."""
    context.previous = top_context()
    if context.backend is not None and not context.backend.device_number:
        context.host = context.backend
    elif context.previous is not None:
        context.host = context.previous.host
    if context.previous is not None:
        context.numpy = context.previous.numpy
    try:
        PyContextVar_Set(variable, context)
    except MemoryError:
        # CPython's failure may be that of the token, after the variable was set.
        if top_context() is not context:
            raise
    # After the set: that is what creates a thread's first contextvars.Context.
    context.home = <object>PyThreadState_Get().context
    return 0


cdef Context own_context():
    """Return the current context, whose entries are, or can be, those of this task.

    Entries are pushed to it without a change of the variable, which is slow. A context
    without entries is anyone's who has it; where another task has entries in it, this
    one gets a context of its own, which it keeps.
    """
    cdef Context context = top_context()
    cdef Context made
    if context is not None and (context.home is None or is_here(context)):
        return context
    made = Context(None if context is None else context.backend)
    enter_context(made)
    made.home = made.previous = None
    return made


cdef int push(Context context, Entry entry) noexcept:
    """Make an entry the innermost one of a context of one's own."""
    if context.home is None:
        context.home = <object>PyThreadState_Get().context
    entry.left_early = False
    entry.context = context
    entry.lower = context.top
    if entry.arena is not None and entry.arena.backend.device_number:
        # The CPU's arrays are made where they were outside of it.
        entry.on_device = entry.arena
        entry.arena = None if context.top is None else context.top.arena
    context.top = entry
    return 0


cdef void unlink_entry(Entry entry) noexcept:
    """Remove an entry, which need not be the innermost one."""
    cdef Context context = entry.context
    cdef Entry above = context.top
    if above is entry:
        context.top = entry.lower
    else:
        while above is not entry:
            if above.on_device is not None and above.arena is entry.arena:
                above.arena = None if entry.lower is None else entry.lower.arena
            if above.lower is entry:
                above.lower = entry.lower
                break
            above = above.lower
    entry.lower = entry.context = None
    if context.top is None and context.scope is None:
        context.home = None


cdef int leave_scope(Scope scope, object kind) except -1:
    """Leave the innermost scope, which `scope` must be, entered here.

    Where it is not the innermost, nothing is changed and WorkspaceError is raised.
    But an exit comes only once, so it takes effect as soon as those above have left.
    What a finalizer leaves in another task (`kind` is GeneratorExit) ends at once.
    """
    cdef Context context = top_context()
    cdef Entry entry
    cdef Backend outside
    if context is not None and is_here(context) and innermost(context) is scope:
        return leave_innermost(context)
    if scope.settled:
        scope.settled -= 1
        return 0
    if mark_early(context, scope):
        raise WorkspaceError(
            f"{scope} was left out of order: the innermost scope here is "
            f"{innermost(context)}; nothing was changed, and it is left when that is. "
            "Leave scopes in the reverse order in which they were entered.")
    entry = scope.last_entry()
    if entry is not None and not entry.left_early and kind is GeneratorExit:
        outside = backend_of(entry.context)
        unlink_entry(entry)
        return scope.left(outside)
    inner = "none" if context is None else innermost(context) or "none"
    inherited = context is not None and not is_here(context)
    raise WorkspaceError(
        f"{scope} was left out of order: it was not entered in this thread or task, "
        f"where the innermost scope is {inner}{' (inherited)' * inherited}; nothing "
        "was changed. Leave scopes where they were entered, in the reverse order.")


cdef Scope innermost(Context context):
    """Return the innermost scope of a context; None if it has none."""
    return context.scope if context.top is None else context.top.scope


cdef bint mark_early(Context context, Scope scope) noexcept:
    """Note that a scope that was entered here is left too early; False: it was not."""
    cdef Entry entry
    while context is not None:
        if is_here(context):
            entry = context.top
            while entry is not None:
                if entry.scope is scope and not entry.left_early:
                    entry.left_early = True
                    return True
                entry = entry.lower
            if context.scope is scope and not context.left_early:
                context.left_early = True
                return True
        context = before(context)
    return False


cdef int leave_innermost(Context context) except -1:
    """Leave the innermost scope, and with it those that were left too early."""
    cdef Scope scope
    error = None
    while True:
        scope = innermost(context)
        try:
            if context.top is not None:
                unlink_entry(context.top)
                scope.left(backend_of(context))
            else:
                remove(context)
        except BaseException as raised:
            error = error or raised
        context = top_context()
        if context is None or not is_here(context):
            break
        if context.top is not None:
            if not context.top.left_early:
                break
        elif not context.left_early:
            break
        scope = innermost(context)
        scope.settled += 1
    if error is not None:
        raise error
    return 0


cdef void remove(Context context) noexcept:
    """Make the context before one that is left current again."""
    restore_numpy(context.numpy_before)
    try:
        PyContextVar_Set(variable, context.previous)
    except MemoryError:
        # Leaving does not fail: where the variable can't be set, it is passed over.
        context.abandoned = True
    context.home = None


def set_default(backend, /, **options):
    """Make a backend serve the new arrays of all threads outside of `ndx.use`.

    Parameters
    ----------
    backend : str or ndx.backends.Backend
        One of `ndx.backends.available`, or a backend.
    **options
        As for `ndx.use`.

    Returns
    -------
    ndx.backends.Backend
        The backend.

    Examples
    --------
    >>> import ndx
    >>> ndx.set_default("host").name
    'host'
    """
    global default_backend, default_place
    default_place = backends.get(backend, **options)
    if not default_place.device_number:
        default_backend = default_place
    return default_place


def as_option(name, text):
    """Return an option's value from the text of a variable."""
    if name in ("idle_release", "reserve_fraction", "latency"):
        return None if text.lower() == "none" else float(text)
    return text


def defaults_from_environment(environment):
    """Set the defaults from ``NDX_BACKEND``, ``NDX_LIMIT`` and ``NDX_<NAME>_<OPTION>``.

    Raises
    ------
    ValueError
        If a variable's value is bad; it names the variables.
    """
    global default_backend
    chosen = environment.get("NDX_BACKEND", "host")
    # Of "cuda:1" the variables are those of "cuda".
    kind = chosen.partition(":")[0]
    options = {name: options_of(environment, name)
               for name in (*backends.BUILTIN, kind)}
    try:
        if "NDX_LIMIT" in environment:
            set_process_limit(environment["NDX_LIMIT"])
        for name, keys in options.items():
            given = {option: as_option(option, environment[key])
                     for option, key in keys.items()}
            if name in backends.BY_CUPY:
                # CuPy is imported for who uses it only.
                backends.configure_later(name, **given)
            elif keys or name == kind:
                backends.configure(chosen if name == kind else name, **given)
        set_default(chosen)
    except (ValueError, TypeError, OSError) as error:
        used = ["NDX_BACKEND", "NDX_LIMIT"]
        for keys in options.values():
            used += keys.values()
        variables = ", ".join([f"{key}={environment[key]!r}" for key in used
                               if key in environment])
        raise ValueError(f"in the environment, {variables}: {error}") from None
    if default_backend is None:
        # The default is a device's; the CPU's arrays need one, too.
        default_backend = backends.get("host")


cdef dict options_of(object environment, str name):
    """Return which variable gives each option of a backend."""
    prefix = f"NDX_{name.upper()}_"
    return {key[len(prefix):].lower(): key for key in environment
            if key.startswith(prefix)}


defaults_from_environment(os.environ)

"""Which backend and workspace serve new arrays, for this thread or task, now."""

import functools
import inspect
import os

cimport numpy as cnp
from cpython.contextvars cimport (
    PyContextVar_Get, PyContextVar_New, PyContextVar_Set,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._memory cimport Block, block_new, block_wrap
from ndx._arenas.base cimport Arena
from ndx.backends.base cimport Backend

from ndx import backends
from ndx._errors import WorkspaceError

__all__ = ["current_backend", "no_workspace", "set_default", "use"]

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_SetHandler(object handler)
    # NULL: NumPy's own.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        # The current contextvars.Context; NULL before its first use.
        PyObject *context
    PyThreadState *PyThreadState_Get() noexcept


cdef class Context:
    """A backend and, inside a workspace, its arena."""

    def __cinit__(self, Backend backend not None, Arena arena=None, scope=None):
        self.backend = backend
        self.arena = arena
        self.scope = scope


cdef class Scope:
    """Base class of what is entered and left, in reverse order."""

    cdef int left(self) except -1:
        """Act on the end of a scope; its context is gone already."""

    cdef Context innermost(self):
        """Return the context of the last entry that was not left; None: unknown."""


# None stands for the process's default, whatever that is by then.
cdef object variable = PyContextVar_New("ndx.context", NULL)
cdef Context default_context

# What makes NumPy ask the current backend for the data of arrays (NEP 49).
cdef object numpy_handler = None


cdef int set_numpy_handler(object handler) except -1:
    """Say which of NumPy's handlers serves in the scope of ``use(numpy=True)``."""
    global numpy_handler
    numpy_handler = handler
    return 0


cdef inline Context top_context():
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


cdef Context entered_context():
    """Return the innermost context that was entered here; None if none was."""
    return top_context()


cdef Context before(Context context):
    """Return the context that was current before one was entered."""
    context = context.previous
    while context is not None and context.abandoned:
        context = context.previous
    return context


cdef Context current_context():
    return outer_context(entered_context())


cdef Context outer_context(Context entered):
    """Return what holds where a context, or none, was entered."""
    return default_context if entered is None else entered


cdef bint is_here(Context context) noexcept:
    """Whether a context was entered in this thread or task.

    Tasks and ``asyncio.to_thread`` run in a copy of their parent's context. They
    must not allocate from its arena, whose cycle may end before they do.
    """
    return <PyObject *>context.home == PyThreadState_Get().context


cdef Context numpy_context():
    """Return the context that NumPy's arrays come from; None: from NumPy's own."""
    cdef Context context = entered_context()
    while context is not None and context.numpy is None:
        context = before(context)
    return context if context is not None and context.numpy else None


cdef Arena current_arena():
    """Return the arena that serves new arrays here; None if a backend does."""
    cdef Context context = entered_context()
    if context is None or context.arena is None or not is_here(context):
        return None
    return context.arena


cdef Arena enclosing_arena():
    """Return the arena of the workspace around the current one, or None."""
    cdef Arena arena = current_arena()
    cdef Context context = entered_context()
    while arena is not None and context is not None and is_here(context):
        if context.arena is not None and context.arena is not arena:
            return context.arena
        context = before(context)
    return None


cdef Arena open_arena(object wanted):
    """Return the arena of the scope open here that is, or has the name, `wanted`."""
    cdef Context context = entered_context()
    while context is not None:
        if context.arena is not None and is_here(context) and (
                context.scope is wanted or context.arena.clock.name == wanted):
            return context.arena
        context = before(context)
    return None


cdef Block *allocate_block(size_t nbytes, bint zero) except NULL:
    """Return a block from the current arena or, without one, backend."""
    cdef Context context = top_context()
    if context is None:
        return block_new(default_context.backend, nbytes, zero)
    if context.arena is not None and is_here(context):
        return context.arena.allocate(nbytes, zero)
    return block_new(context.backend, nbytes, zero)


cdef Backend spill_backend():
    """Return the backend of what is made here but can't lie in an arena."""
    cdef Context context = current_context()
    if context.arena is not None and is_here(context):
        return context.arena.backend
    return context.backend


cdef Block *allocate_detached(size_t nbytes) except NULL:
    """Return a block that no workspace reclaims, from the current backend."""
    return block_new(current_context().backend, nbytes, False)


cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL:
    """Return a block over memory of ours that another object, `keeper`, frees."""
    cdef Arena arena = current_arena()
    cdef Block *block = block_wrap(ptr, nbytes, False, keeper)
    if arena is not None:
        arena.adopt(block)
    return block


cdef int enter_scope(Context context, Context outer) except -1:
    """Make a context the current one, inside of the one that was entered before."""
    context.previous = outer
    context.left_early = context.abandoned = False
    PyContextVar_Set(variable, context)
    # After the set: that is what creates a thread's first contextvars.Context.
    context.home = <object>PyThreadState_Get().context
    return 0


cdef int leave_scope(Scope scope, object kind) except -1:
    """Leave the innermost context, which `scope` must have entered here.

    Where that is not the innermost, nothing is changed and WorkspaceError is raised.
    But an exit comes only once, so it takes effect as soon as those above have left.
    What a finalizer leaves in another task (`kind` is GeneratorExit) ends at once.
    """
    cdef Context context = entered_context()
    cdef Context found
    if context is not None and context.scope is scope and is_here(context):
        PyContextVar_Set(variable, context.previous)
        # Last: it may raise.
        return left_with(context)
    if scope.settled:
        scope.settled -= 1
        return 0
    found = context
    while found is not None and not (
            found.scope is scope and is_here(found) and not found.left_early):
        found = before(found)
    if found is not None:
        found.left_early = True
        raise WorkspaceError(
            f"{scope} was left out of order: the innermost scope here is "
            f"{context.scope}; nothing was changed, and it is left when that is. Leave "
            "scopes in the reverse order in which they were entered.")
    found = scope.innermost()
    if found is not None and not found.left_early and kind is GeneratorExit:
        found.abandoned = True
        return scope.left()
    inner = "none" if context is None else context.scope
    inherited = context is not None and not is_here(context)
    raise WorkspaceError(
        f"{scope} was left out of order: it was not entered in this thread or task, "
        f"where the innermost scope is {inner}{' (inherited)' * inherited}; nothing "
        "was changed. Leave scopes where they were entered, in the reverse order.")


cdef int left_with(Context context) except -1:
    """Tell a scope that it was left, and with it those that were left too early."""
    cdef Context below = context.previous
    error = None
    try:
        restore_numpy(context)
        context.scope.left()
    except BaseException as raised:
        error = raised
    while below is not None and below.left_early and is_here(below):
        PyContextVar_Set(variable, below.previous)
        below.scope.settled += 1
        try:
            restore_numpy(below)
            below.scope.left()
        except BaseException as raised:
            error = error or raised
        below = entered_context()
    if error is not None:
        raise error
    return 0


cdef int restore_numpy(Context context) except -1:
    """Give NumPy the handler that it had when a context was entered."""
    if context.numpy_before is not None:
        PyDataMem_SetHandler(context.numpy_before)
    return 0


class use(Scope):
    """Make a backend serve the new arrays of this thread or task.

    Parameters
    ----------
    backend : str or ndx.backends.Backend
        One of `ndx.backends.available`, or a backend.
    numpy : bool, optional
        Whether the data of NumPy's new arrays comes from the backend, too; False: from
        NumPy's own allocator. Default: as it is outside.
    **options
        The backend's own, such as ``limit="2GiB"``. With any, a new backend with
        its own counters is made.

    Yields
    ------
    ndx.backends.Backend
        The backend.

    Raises
    ------
    ValueError
        If the name is unknown or an option's value is bad; it says what is valid.
    WorkspaceError
        If scopes are left out of order.

    Notes
    -----
    A context manager and a decorator, on `contextvars`: each thread and each
    asyncio task has its own. Inside a workspace it goes first: arrays are made by
    the backend, and by the workspace again when it ends. Arrays stay where they are
    when it ends.

    With ``numpy=True`` a NumPy array counts for its bytes and a header of 64, and
    NumPy raises MemoryError above the limit. Its data is never in a workspace: NumPy's
    arrays live as long as they are referenced. What C code gets from malloc is not
    counted.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB") as backend:
    ...     x = ndx.zeros(1000)
    >>> x.backend is backend
    True

    >>> import numpy as np
    >>> with ndx.use("host", limit="1MiB", numpy=True) as backend:
    ...     a = np.ones(1000)
    >>> backend.stats()["allocated_bytes"]
    8064
    """

    def __init__(self, backend, /, *, numpy=None, **options):
        if numpy is not None and not isinstance(numpy, bool):
            raise TypeError(f"numpy= is a bool or None, not {type(numpy).__name__}")
        self.numpy = numpy
        self.backend = backends.get(backend, **options)

    def __repr__(self):
        return f"ndx.use({self.backend.name!r})"

    def __enter__(self):
        enter_use(Context(self.backend, None, self), self.numpy)
        return self.backend

    def __exit__(self, kind, error, traceback):
        if self.numpy and isinstance(error, MemoryError):
            explain(error)
        leave_scope(self, kind)

    def __call__(self, function):
        backend, numpy = self.backend, self.numpy
        return wrapped(function, lambda: use(backend, numpy=numpy))


cdef int enter_use(Context context, object numpy) except -1:
    """Enter a context, and let NumPy's arrays be made as it says."""
    if numpy is None:
        return enter_scope(context, entered_context())
    context.numpy = numpy
    before = (PyDataMem_SetHandler(numpy_handler) if numpy
              else reset_numpy_handler(NULL))
    try:
        enter_scope(context, entered_context())
    except BaseException:
        PyDataMem_SetHandler(before)
        raise
    context.numpy_before = before
    return 0


cdef int explain(object error) except -1:
    """Say why NumPy got no memory, as its own error can't."""
    cdef Context context = numpy_context()
    if context is not None and context.refusal is not None and \
            context.refusal is not error and error.__cause__ is None:
        error.__cause__ = context.refusal
    return 0


class no_workspace(Scope):
    """Let new arrays be independent of the workspaces around.

    Notes
    -----
    A context manager and a decorator. New arrays come from the backend that is current
    outside of the workspaces, and are freed by reference counting. ND4J's
    ``scopeOutOfWorkspaces()``.

    Examples
    --------
    >>> import ndx
    >>> with ndx.workspace("step"):
    ...     with ndx.no_workspace():
    ...         kept = ndx.ones(3)
    >>> kept.attached
    False
    """

    def __repr__(self):
        return "ndx.no_workspace()"

    def __enter__(self):
        enter_scope(Context(current_context().backend, None, self), entered_context())

    def __exit__(self, kind, error, traceback):
        leave_scope(self, kind)

    def __call__(self, function):
        return wrapped(function, no_workspace)


cdef object wrapped(object function, object scope):
    """Return a function (or coroutine function) whose calls run in a new scope."""
    if inspect.iscoroutinefunction(function):
        @functools.wraps(function)
        async def wrapper(*args, **kwargs):
            with scope():
                return await function(*args, **kwargs)
    else:
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with scope():
                return function(*args, **kwargs)
    return wrapper


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
    global default_context
    default_context = Context(backends.get(backend, **options))
    return default_context.backend


def current_backend():
    """Return the backend that serves new arrays here and now; a workspace's in it.

    Examples
    --------
    >>> import ndx
    >>> ndx.current_backend().name
    'host'
    """
    return spill_backend()


def defaults_from_environment(environment):
    """Set the default from ``NDX_BACKEND`` and ``NDX_<NAME>_LIMIT``.

    Raises
    ------
    ValueError
        If a variable's value is bad; it names the variable.
    """
    name = environment.get("NDX_BACKEND", "host")
    limit = environment.get(f"NDX_{name.upper()}_LIMIT")
    options = {} if limit is None else {"limit": limit}
    try:
        set_default(backends.configure(name, **options))
    except (ValueError, TypeError) as error:
        variables = ", ".join([
            f"{key}={environment[key]!r}"
            for key in ("NDX_BACKEND", f"NDX_{name.upper()}_LIMIT")
            if key in environment])
        raise ValueError(f"in the environment, {variables}: {error}") from None


defaults_from_environment(os.environ)

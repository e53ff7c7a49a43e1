"""Which backend and workspace serve new arrays, for this thread or task, now."""

import functools
import inspect
import os

from cpython.contextvars cimport (
    PyContextVar_Get, PyContextVar_New, PyContextVar_Set,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._arena cimport Arena
from ndx._memory cimport Block, block_new, block_wrap
from ndx.backends.base cimport Backend

from ndx import backends
from ndx._budget import set_process_limit
from ndx._errors import WorkspaceError

__all__ = ["current_backend", "set_default", "use"]

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


# None stands for the process's default, whatever that is by then.
cdef object variable = PyContextVar_New("ndx.context", NULL)
cdef Context default_context


cdef Context current_context():
    cdef PyObject *value = NULL
    PyContextVar_Get(variable, NULL, &value)
    if value == NULL:
        return default_context
    context = <object>value
    Py_DECREF(context)
    return default_context if context is None else <Context>context


cdef bint context_is_inherited(Context context) noexcept:
    """Whether this thread or task only has a copy of the scope's context.

    Tasks and ``asyncio.to_thread`` run in a copy of their parent's context. They
    must not allocate from its arena, whose cycle may end before they do.
    """
    return <PyObject *>context.home != PyThreadState_Get().context


cdef Block *allocate_block(size_t nbytes, bint zero) except NULL:
    """Return a block from the current arena or, without one, backend."""
    cdef Context context = current_context()
    if context.arena is not None and not context_is_inherited(context):
        return context.arena.allocate(nbytes, zero)
    return block_new(context.backend, nbytes, zero)


cdef Backend spill_backend():
    """Return the backend of what is made here but can't lie in an arena."""
    cdef Context context = current_context()
    if context.arena is not None and not context_is_inherited(context):
        return context.arena.backend
    return context.backend


cdef Block *allocate_detached(size_t nbytes) except NULL:
    """Return a block that no workspace reclaims, from the current backend."""
    return block_new(current_context().backend, nbytes, False)


cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL:
    """Return a block over memory of ours that another object, `keeper`, frees."""
    cdef Context context = current_context()
    cdef Block *block = block_wrap(ptr, nbytes, False, keeper)
    if context.arena is not None and not context_is_inherited(context):
        context.arena.adopt(block)
    return block


cdef int push_context(Context context) except -1:
    """Make a context the current one of this thread or task."""
    cdef PyObject *previous = NULL
    PyContextVar_Get(variable, NULL, &previous)
    if previous != NULL:
        context.previous = <object>previous
        Py_DECREF(context.previous)
    PyContextVar_Set(variable, context)
    # After the set: that is what creates a thread's first contextvars.Context.
    context.home = <object>PyThreadState_Get().context
    return 0


cdef int pop_context(object scope) except -1:
    """Leave the innermost context, which `scope` must have entered here."""
    cdef Context context = current_context()
    if context.scope is not scope:
        raise WorkspaceError(
            f"{scope} was left out of order: the innermost scope here is "
            f"{context.scope}; nothing was changed. Leave scopes in the reverse "
            "order in which they were entered, in the same thread or task.")
    if context_is_inherited(context):
        raise WorkspaceError(
            f"{scope} was entered in another thread or task, and this one only "
            "inherited it; nothing was changed. Leave it where it was entered.")
    PyContextVar_Set(variable, context.previous)
    context.home = None
    return 0


class use:
    """Make a backend serve the new arrays of this thread or task.

    Parameters
    ----------
    backend : str or ndx.backends.Backend
        One of `ndx.backends.available`, or a backend.
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

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB") as backend:
    ...     x = ndx.zeros(1000)
    >>> x.backend is backend
    True
    """

    def __init__(self, backend, /, **options):
        self.backend = backends.get(backend, **options)

    def __repr__(self):
        return f"ndx.use({self.backend.name!r})"

    def __enter__(self):
        push_context(Context(self.backend, None, self))
        return self.backend

    def __exit__(self, *exception):
        pop_context(self)

    def __call__(self, function):
        backend = self.backend
        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with use(backend):
                    return await function(*args, **kwargs)
        else:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with use(backend):
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
    name = environment.get("NDX_BACKEND", "host")
    prefix = f"NDX_{name.upper()}_"
    options = {key[len(prefix):].lower(): key for key in environment
               if key.startswith(prefix)}
    try:
        if "NDX_LIMIT" in environment:
            set_process_limit(environment["NDX_LIMIT"])
        values = {option: as_option(option, environment[key])
                  for option, key in options.items()}
        set_default(backends.configure(name, **values))
    except (ValueError, TypeError) as error:
        variables = ", ".join([
            f"{key}={environment[key]!r}"
            for key in ("NDX_BACKEND", "NDX_LIMIT", *options.values())
            if key in environment])
        raise ValueError(f"in the environment, {variables}: {error}") from None


defaults_from_environment(os.environ)

"""Workspaces as users see them: named arenas, entered and left."""

import itertools
import sys
import threading
import weakref


from cpython.exc cimport PyErr_WriteUnraisable

from ndx._arena cimport Arena
from ndx._context cimport (
    Context, context_is_inherited, current_context, pop_context, push_context,
)

from ndx._errors import WorkspaceError
from ndx._sizes import format_size
from ndx._workspace_config import WorkspaceConfig
from ndx.backends import get as get_backend

__all__ = ["Workspace", "workspace"]


cdef class Workspace:
    """A cyclic arena: what is made in its scope is reclaimed when that ends.

    Made by `ndx.workspace`. It belongs to the thread or asyncio task that made it.
    """

    cdef readonly str name
    cdef readonly object config
    cdef Arena arena
    cdef Py_ssize_t depth            # how often it is entered now
    cdef unsigned long thread
    cdef object task                 # weak reference, or None outside of a task
    cdef object __weakref__

    def __cinit__(self, token=None):
        if token is not anonymous:
            raise TypeError("make a workspace by ndx.workspace(name, ...)")

    def __enter__(self):
        if self.depth:
            # Entered again, where it is open: the same cycle goes on.
            if not self.is_here():
                raise WorkspaceError(
                    f"{self} is open in another thread or task; each has its own "
                    "of every name: ask ndx.workspace(name) there")
        else:
            if self.thread != threading.get_ident() or not self.is_task_here():
                raise WorkspaceError(
                    f"{self} belongs to another thread or task; each has its own "
                    "of every name: ask ndx.workspace(name) there")
            self.arena.begin()
        try:
            push_context(Context(current_context().backend, self.arena, self))
        except BaseException:
            if not self.depth:
                self.arena.end()
            raise
        self.depth += 1
        return self

    def __exit__(self, kind, error, traceback):
        pop_context(self)
        self.depth -= 1
        if not self.depth:
            try:
                self.arena.end()
            except Exception:
                # A backend that is broken may not hide what went wrong in the scope.
                if kind is None:
                    raise
                PyErr_WriteUnraisable(self)

    cdef bint is_task_here(self):
        task = None if self.task is None else self.task()
        return task is current_task()

    cdef bint is_here(self):
        """Whether this context is inside of one of the workspace's scopes."""
        cdef Context context = current_context()
        while context is not None:
            if context.scope is self:
                return not context_is_inherited(context)
            context = context.previous
        return False

    @property
    def backend(self):
        """The backend that its memory comes from."""
        return self.arena.backend

    @property
    def size(self):
        """Bytes of the arena; 0 while that is still to be learned."""
        return self.arena.size

    @property
    def generation(self):
        """The generation of arrays made now; each end of a scope is a new one."""
        return self.arena.clock.now

    @property
    def is_open(self):
        """Whether a scope of it is entered now."""
        return self.depth > 0

    def stats(self):
        """Return what the workspace holds, as a dict of bytes and counts.

        Returns
        -------
        dict
            ``size`` of the arena, ``offset`` (end of what this cycle has used),
            ``cycles`` (finished), ``generation``; ``cycle_bytes`` (asked for in
            this cycle or, when closed, in the last), ``last_cycle_bytes``,
            ``max_cycle_bytes``; ``spilled_count`` and ``spilled_bytes`` of the same
            cycle, ``total_spills``; ``retained_count`` and ``retained_bytes`` (of
            past cycles, still read by foreign code).
        """
        cdef Arena arena = self.arena
        return {
            "size": arena.size,
            "offset": arena.offset,
            "cycles": arena.cycles,
            "generation": arena.clock.now,
            "cycle_bytes": arena.cycle_bytes,
            "last_cycle_bytes": arena.last_cycle_bytes,
            "max_cycle_bytes": arena.max_cycle_bytes,
            "spilled_count": arena.spilled_count,
            "spilled_bytes": arena.spilled_bytes,
            "total_spills": arena.total_spills,
            "retained_count": arena.retained_count,
            "retained_bytes": arena.retained_bytes,
        }

    def __repr__(self):
        state = "open" if self.depth else "closed"
        return (f"<Workspace {self.name!r}: {format_size(self.arena.size)}, {state}, "
                f"generation {self.arena.clock.now}>")


cdef object of_thread = threading.local()
cdef object of_tasks = weakref.WeakKeyDictionary()
cdef object anonymous = itertools.count(1)


cdef object current_task():
    # Not imported for this: without it, or without a running loop, there is no task.
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or asyncio._get_running_loop() is None:
        return None
    return asyncio.current_task()


cdef dict named_workspaces(object task):
    if task is None:
        try:
            return of_thread.workspaces
        except AttributeError:
            of_thread.workspaces = {}
            return of_thread.workspaces
    return of_tasks.setdefault(task, {})


def workspace(name=None, /, *, backend=None, **config):
    """Return the workspace of a name, of this thread or task; make it at first.

    Parameters
    ----------
    name : str, optional
        Its name. Each thread and each asyncio task has its own of every name.
        None: a new one, that nobody else finds.
    backend : str or ndx.backends.Backend, optional
        Where its memory comes from. Default: the backend that is current when it is
        made.
    **config
        The policies: ``size``, ``learn``, ``overallocation``, ``spill``; see
        `ndx.WorkspaceConfig`.

    Returns
    -------
    Workspace
        A context manager. Arrays that are made in its scope lie in its arena, and
        are reclaimed together when the scope ends; ``x.detach()`` keeps one.

    Raises
    ------
    WorkspaceError
        If the name exists with another config or backend.
    ValueError
        If a policy's value is bad; it says what is valid.

    Notes
    -----
    Entering a workspace that is open already goes on with the same cycle. The
    semantics are those of ND4J's workspaces (``getAndActivateWorkspace``), except
    that every use of an array after its scope raises `StaleArrayError`.

    Examples
    --------
    >>> import ndx
    >>> total = ndx.zeros(())
    >>> for i in range(3):
    ...     with ndx.workspace("step"):
    ...         x = ndx.ones(1000) * i
    ...         total += ndx.sum(x)
    >>> float(total)
    3000.0
    >>> ndx.workspace("step").stats()["spilled_count"]
    0
    """
    cdef Workspace found
    cdef dict named = None
    task = current_task()
    if name is not None:
        if type(name) is not str:
            raise TypeError(
                f"a workspace's name must be a str, not {type(name).__name__}")
        named = named_workspaces(task)
        found = named.get(name)
        if found is not None:
            if config or backend is not None:
                check_same(found, config, backend)
            return found
    else:
        name = f"anonymous-{next(anonymous)}"
    found = make_workspace(name, backend, unknown_checked(config))
    found.task = None if task is None else weakref.ref(task)
    if named is not None:
        named[name] = found
    return found


cdef object unknown_checked(dict config):
    try:
        return WorkspaceConfig(**config)
    except TypeError:
        valid = list(WorkspaceConfig.__dataclass_fields__)
        unknown = [key for key in config if key not in valid]
        if not unknown:
            raise
        raise TypeError(
            f"a workspace has no policy {unknown[0]!r}; valid are "
            f"{', '.join(['backend', *valid])}") from None


cdef int check_same(Workspace found, dict config, object backend) except -1:
    wanted = unknown_checked(config)
    if config and wanted != found.config:
        raise WorkspaceError(
            f"workspace {found.name!r} exists with {found.config}; it can't be had "
            f"with {wanted}. Ask for it by its name alone, or take another name.")
    if backend is not None and get_backend(backend) is not found.arena.backend:
        raise WorkspaceError(
            f"workspace {found.name!r} exists on {found.arena.backend}; it can't be "
            f"had on {backend!r}. Take another name.")
    return 0


cdef Workspace make_workspace(str name, object backend, object config):
    cdef Workspace made = Workspace.__new__(Workspace, anonymous)
    source = current_context().backend if backend is None else get_backend(backend)
    made.name = name
    made.config = config
    made.thread = threading.get_ident()
    made.arena = Arena(name, source, config.size, config.learn == "first",
                       config.overallocation, config.spill == "fail")
    return made

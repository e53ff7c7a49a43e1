"""`ndx.workspace`: the workspace of a name, of this thread."""

from cpython.object cimport PyObject

import dataclasses
import itertools
import sys
import weakref

from ndx._arenas.arena cimport set_spill_everything
from ndx._blocks.block cimport Clock
from ndx._context.context cimport Context, placing_backend, top_context
from ndx._lib.free_threading cimport (
    ndx_get_object, ndx_load_int, ndx_replace, ndx_store_int,
)
from ndx._lib.interpreter cimport is_here
from ndx._lib.unraisable cimport log_warning
from ndx._workspaces.workspace cimport (
    Workspace, make_workspace, unclaim, workspace_of,
)

from ndx._lib.call_site import is_ours, shown
from ndx._lib.errors import WorkspaceError
from ndx._workspaces.config import WorkspaceConfig
from ndx._workspaces.owners import named_workspaces
from ndx.backends import get as get_backend

__all__ = ["current_workspace", "debug_mode", "default_workspace_config",
           "workspace"]

cdef object anonymous = itertools.count(1)
cdef PyObject *default_config = NULL
ndx_replace(&default_config, WorkspaceConfig())
cdef tuple MODES = ("off", "spill", "bypass")
cdef int mode = 0               # place in MODES

cdef enum:
    CYCLES = 100                 # cycles in a row, each of a new workspace: a warning
    LINES = 256                  # lines that are kept

cdef dict nameless = {}          # by (file, line): (clock of the last, how many)


def workspace(name: str | None = None, /, *, config: WorkspaceConfig | None = None,
              backend: BackendLike | None = None,
              **policies: Unpack[Policies]) -> Workspace:
    """Return the workspace of a name, of this thread; make it at first.

    Parameters
    ----------
    name : str, optional
        Its name. Each thread has its own of every name. Its asyncio tasks share it,
        one after the other; a task that enters it while another is inside gets a
        sibling (as ``with ... as``). None: a new one, that nobody else finds.
    backend : str or ndx.backends.Backend, optional
        Where its memory comes from; a size that is given is taken at once. Default:
        the backend that is current when a cycle starts, a GPU's too (the arenas of the
        last few are kept); a size that is given is taken by the first cycle there.
    config : ndx.WorkspaceConfig, optional
        The policies. Default: `ndx.memory.default_workspace_config`.
    **policies
        Single ones, in place of those of `config`: ``size``, ``min_size``,
        ``max_size``, ``overallocation``, ``learn``, ``cycles``, ``spill``, ``reset``,
        ``slots``, ``path``, ``escape``, ``mirror``, ``debug``; see
        `ndx.WorkspaceConfig`.

    Returns
    -------
    Workspace
        A context manager and decorator. Arrays that are made in its scope lie in its
        arena, and are reclaimed together when the scope ends; ``x.detach()`` keeps
        one. What a decorated function returns is detached.

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
    cdef object named = None
    if name is not None:
        if type(name) is not str:
            hint = "; write @ndx.workspace(\"name\")" if callable(name) else ""
            raise TypeError(
                f"a workspace's name must be a str, not {type(name).__name__}{hint}")
        named = named_workspaces()
        found = named.get(name)
        if found is not None:
            if policies or config is not None or backend is not None:
                check_same(found, config, policies, backend)
            return found.entered_here() or found
    wanted = checked(config, policies)
    source = placing_backend() if backend is None else get_backend(backend)
    if name is None:
        name = f"anonymous-{next(anonymous)}"
    found = make_workspace(name, source, wanted, debug_mode() == "bypass", None)
    found.base = <object>ndx_get_object(&default_config)
    # A file, or a policy that is for GPUs alone, binds it to its first backend.
    found.follows = backend is None and wanted.path is None and \
        wanted.mirror == "none" and wanted.spill != "host"
    if not found.follows:
        # The backend is known, so the memory is taken now; otherwise when a cycle
        # starts. Code that runs because memory is short may find the workspace, which
        # is not ready yet.
        found.claim("entered")
        try:
            found.slots.get_memory(found.slots.now)
        finally:
            unclaim(found)
    if named is None:
        note_nameless(found)
    else:
        found.registry = weakref.ref(named)
        named[name] = found
    return found


def current_workspace() -> Workspace | None:
    """Return the workspace in which this thread or task makes new arrays; or None.

    Returns
    -------
    Workspace or None
        That of the innermost scope. None: new arrays are independent, since no scope is
        open here, or since the innermost one is of `ndx.no_workspace` or `ndx.use`.

    See Also
    --------
    current_backend : the backend that serves new arrays.

    Examples
    --------
    >>> import ndx
    >>> with ndx.workspace("step"):
    ...     ndx.current_workspace().name
    'step'
    >>> ndx.current_workspace() is None
    True
    """
    cdef Context context = top_context()
    if context is None or not is_here(context):
        return None
    return workspace_of(context.top)


cdef int note_nameless(Workspace made) except -1:
    """Warn, once for each line, that it makes a new workspace for every cycle."""
    try:
        frame = sys._getframe()
    except ValueError:
        # A thread may run no function of Python but this one.
        return 0
    file, line = frame.f_code.co_filename, frame.f_lineno
    if made.arena is None or is_ours(file):
        return 0
    found = nameless.get((file, line))
    if found is None:
        if len(nameless) < LINES:
            nameless[file, line] = (made.arena.clock, 0)
        return 0
    clock, count = found
    if count == CYCLES:
        return 0
    # A clock at 2 stands at the end of its workspace's first cycle.
    count = count + 1 if (<Clock>clock).now == 2 else 0
    nameless[file, line] = (made.arena.clock, count)
    if count == CYCLES:
        log_warning(
            "%d workspaces without a name were made at %s:%d for one cycle each: none "
            "leaves its first cycle, so that its arrays come from the backend. Give it "
            "a name, or make it before the loop", (count, shown(file), line))
    return 0


cdef object checked(object config, dict policies):
    """Return the config that a call of `ndx.workspace` asks for."""
    if config is None:
        config = <object>ndx_get_object(&default_config)
    elif not isinstance(config, WorkspaceConfig):
        raise TypeError(
            f"config must be an ndx.WorkspaceConfig, not {type(config).__name__}")
    valid = list(WorkspaceConfig.__dataclass_fields__)
    for key in policies:
        if key not in valid:
            raise TypeError(
                f"a workspace has no policy {key!r}; valid are "
                f"{', '.join(['backend', *valid])}")
    return dataclasses.replace(config, **policies) if policies else config


cdef int check_same(Workspace found, object config, dict policies,
                    object backend) except -1:
    # The config as the first call would make it, whatever the default is by now.
    wanted = checked(found.base if config is None else config, policies)
    if (policies or config is not None) and wanted != found.config:
        raise WorkspaceError(
            f"workspace {found.name!r} exists with {found.config}; it can't be had "
            f"with {wanted}. Ask for it by its name alone, take another name, or "
            f"make it anew after ndx.workspace({found.name!r}).destroy().")
    if backend is not None and get_backend(backend) is not found.backend:
        asked = get_backend(backend)
        same = " (another instance)" if repr(asked) == repr(found.backend) else ""
        raise WorkspaceError(
            f"workspace {found.name!r} exists on {found.backend}; it can't be had on "
            f"{asked!r}{same}. Take another name, or give the same instance.")
    return 0


def default_workspace_config(config: WorkspaceConfig | None = None,
                             /) -> WorkspaceConfig:
    """Set the policies of workspaces that are made without a config; return them.

    Parameters
    ----------
    config : ndx.WorkspaceConfig, optional
        The new ones, for all threads; existing workspaces keep theirs, and are found
        by the calls that made them. None: leave them as they are.

    Returns
    -------
    ndx.WorkspaceConfig
        What holds now.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.default_workspace_config()
    WorkspaceConfig()
    """
    if config is not None:
        config = checked(config, {})
        ndx_replace(&default_config, config)
    return <object>ndx_get_object(&default_config)


def debug_mode(new: DebugMode | None = None, /) -> DebugMode:
    """Set what workspaces do with allocations, to find out whether they are at fault.

    Parameters
    ----------
    new : {"off", "spill", "bypass"}, optional
        ``"spill"``: from their next cycle on, no arena serves or learns, and every
        allocation comes from the backend; arrays still go stale. ``"bypass"``:
        workspaces that are made from now on do nothing. None: leave it as it is.

    Returns
    -------
    str
        The mode before.

    Raises
    ------
    ValueError
        If there is no such mode.

    Notes
    -----
    ND4J's ``DebugMode``: ``SPILL_EVERYTHING`` and ``BYPASS_EVERYTHING``.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.debug_mode("spill")
    'off'
    >>> ndx.memory.debug_mode("off")
    'spill'
    """
    before = MODES[ndx_load_int(&mode)]
    if new is not None:
        if new not in MODES:
            raise ValueError(
                f"debug mode {new!r} is not valid; valid are 'off', 'spill', 'bypass'")
        set_spill_everything(new == "spill")
        ndx_store_int(&mode, MODES.index(new))
    return before

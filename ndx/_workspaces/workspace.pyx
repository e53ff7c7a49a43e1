"""Workspaces as users see them: arenas, entered and left."""

import dataclasses
import functools
import inspect
import threading
import weakref

from ndx._collector cimport scope_ended
from ndx._context cimport (
    Context, Entry, Here, Scope, drop_entry, is_here, ndx_here, outer_backend,
)
from ndx._ignored cimport report_ignored
from ndx._scopes cimport abandon, has_ended, leave_scope, own_context, push
from ndx._workspaces.rescue cimport rescue
from ndx._arenas.base cimport Arena
from ndx._arenas.bump cimport BumpArena
from ndx._arenas.file cimport FileArena
from ndx._arenas.planned cimport PlannedArena
from ndx._arenas.sizing cimport Sizing
from ndx._arenas.twin cimport add_twin
from ndx.backends.base cimport Backend
from ndx.backends.file cimport FileBackend

from ndx._errors import WorkspaceError
from ndx._sizes import format_size
from ndx._workspaces.owners import all_workspaces, current_task, named_workspaces

__all__ = ["Workspace"]

# Who may make a workspace.
cdef object maker = object()


cdef class Workspace(Scope):
    """A cyclic arena: what is made in its scope is reclaimed when that ends.

    Made by `ndx.workspace`. It belongs to the thread or asyncio task that made it.
    """

    def __cinit__(self, token=None, name=None, backend=None, config=None, task=None,
                  bypassed=False):
        cdef Py_ssize_t slots
        if token is not maker:
            raise TypeError("make a workspace by ndx.workspace(name, ...)")
        self.name = name
        self.config = config
        self.backend = backend
        self.bypassed = bypassed
        self.spare = Entry(None)
        self.ring = config.reset == "ring"
        if config.path is not None and not bypassed:
            self.file = FileBackend(config.path, config.size, config.max_size)
            # As long as the file, which need not be what the config says.
            self.sizing = Sizing(dataclasses.replace(config, size=self.file.size))
        else:
            self.sizing = Sizing(config)
        self.owner_id = ndx_here().thread
        self.owner = weakref.ref(threading.current_thread())
        self.task = None if task is None else weakref.ref(task)
        kind = FileArena if self.file is not None else \
            PlannedArena if config.learn == "liveness" else BumpArena
        slots = 0 if bypassed else config.slots if self.ring else 1
        # No comprehension: Cython's drops an item twice if the list can't grow.
        self.arenas = []
        for _ in range(slots):
            arena = kind(name, backend, self.sizing, config, self.file)
            if config.mirror == "host":
                add_twin(arena, config)
            self.arenas.append(arena)
        self.arena = self.arenas[0] if slots else None

    # ------------------------------------------------------------------ scopes

    def __enter__(self):
        cdef Context context = own_context()
        cdef Here here = ndx_here()
        cdef Entry entry = self.spare
        if self.depth:
            # Entered again, where it is open: the same cycle goes on.
            self.check_open_here()
            entry = Entry(self, self.arena)
        else:
            # Usually where it was entered the last time. (The address may be that of
            # another task's by now; then only this check is less strict.)
            if self.last_home != here.home or self.owner_id != here.thread:
                self.check_owner(&here)
                self.last_home = here.home
            self.check_idle("entered")
            if not self.bypassed:
                self.start(context)
            entry.arena = self.arena
            entry.scope = self
        push(context, entry, self, &here)
        self.depth += 1
        return self

    cdef int start(self, Context context) except -1:
        """Start a cycle, in the next slot of a ring."""
        cdef Arena arena = self.arena
        cdef Py_ssize_t turn = self.turn
        self.busy = True
        try:
            if self.ring:
                if arena.used:
                    turn = turn + 1 if turn + 1 < len(self.arenas) else 0
                    arena = self.arenas[turn]
                if arena.used:
                    arena.expire(outer_backend())
            arena.prepare()
        finally:
            self.busy = False
        arena.begin()
        self.arena = arena
        self.turn = turn
        return 0

    def __exit__(self, kind, error, traceback):
        try:
            leave_scope(self, kind)
        except Exception as failure:
            # What goes wrong at the end may not hide what went wrong in the scope.
            if error is None or isinstance(failure, WorkspaceError):
                raise
            report_ignored(self, failure)

    cdef int left(self, Entry entry, Backend outside) except -1:
        drop_entry(self, entry)
        self.depth -= 1
        if self.depth or self.bypassed:
            return 0
        self.busy = True
        try:
            self.arena.finish()
            if not self.ring:
                self.arena.expire(outside)
                self.arena.fit()
        finally:
            self.busy = False
        scope_ended()
        return 0

    cdef bint task_has_ended(self):
        if self.task is None:
            return False
        task = self.task()
        return task is None or task.done()

    cdef int check_open_here(self) except -1:
        if self.is_entered_here():
            return 0
        if has_ended(self.top):
            raise WorkspaceError(
                f"{self} can't be entered: the thread or task that is in a scope of it "
                "has ended; destroy it, or use another")
        raise WorkspaceError(
            f"{self} is open in another thread or task; each has its own of every "
            "name: ask ndx.workspace(name) there")

    cdef int check_owner(self, const Here *here) except -1:
        if not self.is_owned_here():
            raise WorkspaceError(
                f"{self} belongs to another thread or task; each has its own of every "
                "name: ask ndx.workspace(name) there")
        return 0

    cdef bint is_owned_here(self):
        if self.owner_id != ndx_here().thread:
            return False
        task = current_task()
        return self.task is None if task is None else (
            self.task is not None and self.task() is task)

    cdef bint is_entered_here(self):
        return self.top is not None and is_here(self.top.context)

    def borrow(self):
        """Make the workspace current again, inside of a scope of it; no new cycle.

        Returns
        -------
        context manager
            In its scope, new arrays are made in this workspace, however many others
            were entered in between; at its end those are current again.

        Raises
        ------
        WorkspaceError
            On entry, if no scope of the workspace is open here.

        Notes
        -----
        ND4J's ``notifyScopeBorrowed``. To enter an open workspace again has the same
        effect; a borrowed one must be open, so that this never starts a cycle.

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("outer") as outer, ndx.workspace("inner"):
        ...     with outer.borrow():
        ...         x = ndx.ones(3)
        ...     x.workspace
        'outer'
        """
        return Borrowed(self)

    # ---------------------------------------------------------------- decorator

    def __call__(self, function):
        """Return a function whose calls run in a scope, and whose result is detached.

        Parameters
        ----------
        function : callable
            A function or coroutine function. Generator functions are refused: their
            scope would end before they run.

        Returns
        -------
        callable
            Each thread or task that calls it has its own workspace. Arrays in the
            result (in tuples, lists, dicts, sets, deques, dataclasses, nested) leave
            the workspace: views go on sharing memory, spilled arrays are not copied.
            Those in other objects go stale.

        Raises
        ------
        TypeError
            If it is no such function.
        """
        if not callable(function):
            raise TypeError(
                f"a workspace decorates functions, not {type(function).__name__}")
        if inspect.isgeneratorfunction(function) or \
                inspect.isasyncgenfunction(function):
            raise TypeError(
                f"{function!r} is a generator function: its scope would end before it "
                "runs. Put `with ndx.workspace(...):` inside of it.")

        def enter():
            return self.own()

        if inspect.iscoroutinefunction(function):
            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with enter() as scope:
                    return rescued(scope, await function(*args, **kwargs))
        else:
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with enter() as scope:
                    return rescued(scope, function(*args, **kwargs))
        return wrapper

    cdef Workspace own(self):
        """Return this workspace or, elsewhere, the one of its name there."""
        cdef Workspace found
        if self.is_owned_here():
            return self
        named = named_workspaces()
        found = named.get(self.name)
        if found is None:
            found = make_workspace(self.name, self.backend, self.config, self.bypassed)
            found.registry = weakref.ref(named)
            named[self.name] = found
        return found

    # --------------------------------------------------------------- management

    def initialize(self):
        """Size the arena now, by the cycles so far; not while a scope is open.

        Notes
        -----
        For ``learn="over-time"`` without a number of cycles. Where a size is known
        already it changes only with ``spill="grow"``. ND4J's ``initializeWorkspace``.

        Raises
        ------
        WorkspaceError
            If a scope of it is open.
        """
        cdef Arena arena
        self.check_closed("sized")
        self.busy = True
        try:
            self.sizing.settle()
            for arena in self.arenas:
                if not arena.used:
                    arena.fit()
        finally:
            self.busy = False

    def flush(self):
        """Wait until all that was written to the workspace's file is on disk.

        Raises
        ------
        WorkspaceError
            If it has no file.
        OSError
            If the disk fails; it names the file.
        """
        if self.file is None or self.file.file.fd < 0:
            raise WorkspaceError(
                f"{self} can't be flushed: it lies in no file; give it a path=")
        self.file.file.flush()

    def close(self):
        """Give all of its memory back, as `destroy`, unless something still uses it.

        After this a workspace's file can be deleted, or used by another.

        Raises
        ------
        BufferError
            If a NumPy view, a buffer or a DLPack capsule of an array of a past cycle
            is alive; nothing is changed then.
        WorkspaceError
            If a scope of it is open, in a thread or task that has not ended.
        """
        cdef Arena arena
        self.end_abandoned()
        self.check_closed("closed")
        for arena in all_arenas(self):
            if arena.pinned_count or arena.retired_bytes:
                raise BufferError(
                    f"{self} can't be closed: a NumPy view, a buffer or a DLPack "
                    "capsule of an array in it is alive; close it when that is gone")
        self.destroy()

    def destroy(self):
        """Give all of its memory back, and forget its name and what it learned.

        Arrays of a ring go stale. What foreign code still reads stays until that ends.
        To enter it again starts anew.

        Raises
        ------
        WorkspaceError
            If a scope of it is open, in a thread or task that has not ended.
        """
        cdef Arena arena
        self.end_abandoned()
        self.check_closed("destroyed")
        named = None if self.registry is None else self.registry()
        if named is not None and named.get(self.name) is self:
            del named[self.name]
        self.busy = True
        try:
            self.sizing.forget()
            for arena in self.arenas:
                if arena.used:
                    arena.expire(outer_backend())
                arena.destroy()
            if self.file is not None:
                self.file.leave()
        finally:
            self.busy = False

    cdef int end_abandoned(self) except -1:
        """End the scopes in which their thread or task has ended."""
        while self.top is not None:
            abandon(self.top.scope, self.top)
        return 0

    cdef int check_closed(self, str what) except -1:
        if self.depth:
            raise WorkspaceError(
                f"{self} can't be {what} while a scope of it is open; leave it first")
        return self.check_idle(what)

    cdef int check_idle(self, str what) except -1:
        if self.busy:
            raise WorkspaceError(
                f"{self} can't be {what} while a scope of it starts or ends (by a "
                "finalizer, or a backend that runs Python)")
        return 0

    @property
    def size(self):
        """Bytes of the arena (of all slots); 0 while that is still to be learned."""
        return sum([arena.size for arena in self.arenas])

    @property
    def generation(self):
        """The generation of arrays made now; each cycle (of a slot) is a new one."""
        return 0 if self.arena is None else self.arena.clock.now

    @property
    def is_open(self):
        """Whether a scope of it is entered now."""
        return self.depth > 0

    @property
    def is_left_open(self):
        """Whether the thread or task that entered it, and has not left, has ended."""
        return self.top is not None and has_ended(self.top)

    @property
    def thread(self):
        """The `threading.Thread` that it belongs to; None when that is gone."""
        return self.owner()

    @property
    def parent(self):
        """The workspace that was current where this one was entered; None: none."""
        cdef Entry entry = self.top
        if entry is None:
            return None
        while entry.before is not None:
            entry = entry.before
        entry = entry.lower
        if entry is None or (entry.arena is None and not isinstance(
                entry.scope, (Workspace, Borrowed))):
            return None
        scope = entry.scope
        return (<Borrowed>scope).workspace if isinstance(scope, Borrowed) else scope

    def stats(self):
        """Return what the workspace holds, as a dict of bytes and counts.

        Returns
        -------
        dict
            ``size`` of the arena (of all slots); ``mirror_bytes`` of its twin on the
            host; ``offset`` (end of what this cycle
            has used) and ``slot`` of the current cycle; ``cycles`` (finished),
            ``generation``; ``cycle_bytes`` (asked for in this cycle or, when closed,
            in the last), ``last_cycle_bytes``, ``max_cycle_bytes``; ``live_bytes``
            (of this cycle, that are referenced), ``peak_live_bytes`` (of any cycle);
            ``spilled_count`` and ``spilled_bytes`` of the same cycle,
            ``total_spills``; ``pinned_count`` and ``pinned_bytes`` (of past cycles,
            still read by foreign code or kept by arrays that left);
            ``retired_bytes`` (outgrown arenas of which something is still in use);
            ``escaped_count`` and ``escaped_bytes`` (arrays that left alive, and what
            was copied for them); ``departures`` (requests off the plan of lifetimes).
        """
        cdef Arena arena, now = self.arena
        total = dict.fromkeys(
            ("size", "mirror_bytes", "cycles", "total_spills", "pinned_count",
             "pinned_bytes", "retired_bytes", "escaped_count", "escaped_bytes",
             "departures"), 0)
        last = greatest = peak = 0
        for arena in all_arenas(self):
            total["pinned_count"] += arena.pinned_count
            total["pinned_bytes"] += arena.pinned_bytes
            total["retired_bytes"] += arena.retired_bytes
            total["escaped_count"] += arena.escaped_count
            total["escaped_bytes"] += arena.escaped_bytes
        for arena in self.arenas:
            total["size"] += arena.size
            total["mirror_bytes"] += 0 if arena.twin is None else arena.twin.size
            total["cycles"] += arena.cycles
            total["total_spills"] += arena.total_spills
            total["departures"] += arena.departures
            greatest = max(greatest, arena.max_cycle_bytes)
            peak = max(peak, arena.peak_live_bytes)
        if now is not None and self.depth and self.ring:
            slot = (self.turn or len(self.arenas)) - 1
            last = (<Arena>self.arenas[slot]).last_cycle_bytes
        elif now is not None:
            last = now.last_cycle_bytes
        return {
            "size": total["size"],
            "mirror_bytes": total["mirror_bytes"],
            "offset": 0 if now is None else now.offset,
            "slot": self.turn,
            "cycles": total["cycles"],
            "generation": self.generation,
            "cycle_bytes": 0 if now is None else now.cycle_bytes,
            "last_cycle_bytes": last,
            "max_cycle_bytes": greatest,
            "live_bytes": 0 if now is None else now.live_bytes,
            "peak_live_bytes": peak,
            "spilled_count": 0 if now is None else now.spilled_count,
            "spilled_bytes": 0 if now is None else now.spilled_bytes,
            **{key: total[key] for key in (
                "total_spills", "pinned_count", "pinned_bytes", "retired_bytes",
                "escaped_count", "escaped_bytes", "departures")},
        }

    def __reduce__(self):
        raise TypeError(
            f"{self} can't be pickled: it belongs to a thread or task. Pickle its "
            "config, and ask ndx.workspace(name, config=...) where it is needed")

    def __repr__(self):
        state = "open" if self.depth else "closed"
        return (f"<Workspace {self.name!r}: {format_size(self.size)}, {state}, "
                f"generation {self.generation}>")


cdef class Borrowed(Scope):
    """The scope of `Workspace.borrow`."""

    cdef readonly Workspace workspace

    def __cinit__(self, Workspace workspace not None):
        self.workspace = workspace

    def __enter__(self):
        cdef Context context = own_context()
        cdef Here here = ndx_here()
        if not self.workspace.depth or not self.workspace.is_entered_here():
            raise WorkspaceError(
                f"{self.workspace} can't be borrowed: no scope of it is open here. "
                "Enter it first: with ndx.workspace(name): ...")
        # An entry of the workspace, too, which stays open until the last one ends.
        push(context, Entry(self, self.workspace.arena), self.workspace, &here)
        self.workspace.depth += 1
        return self.workspace

    def __exit__(self, kind, error, traceback):
        leave_scope(self, kind)

    cdef int left(self, Entry entry, Backend outside) except -1:
        return self.workspace.left(entry, outside)

    cdef Entry last_entry(self):
        return self.workspace.top

    cdef bint task_has_ended(self):
        return self.workspace.task_has_ended()

    def __repr__(self):
        return f"<borrowed {self.workspace!r}>"


cdef Workspace make_workspace(str name, object backend, object config, bint bypassed):
    """Return a new workspace of this thread or task."""
    cdef Workspace made = Workspace.__new__(Workspace, maker, name, backend, config,
                                            current_task(), bypassed)
    all_workspaces.add(made)
    return made


cdef list all_arenas(Workspace scope):
    """Return the arenas of a workspace, and their twins."""
    cdef Arena arena
    cdef list found = list(scope.arenas)
    for arena in scope.arenas:
        if arena.twin is not None:
            found.append(arena.twin)
    return found


cdef object rescued(Workspace scope, object result):
    return rescue(scope.arena, result)

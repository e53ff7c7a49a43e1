"""Workspaces as users see them: arenas, entered and left.

A workspace belongs to a family: the one found by name, and its siblings. Siblings are
made for tasks that are inside at the same time. A free sibling is used again, so that
there are never more of them than tasks were inside at once. A workspace whose arena
went, since memory was short, starts its next cycle by taking one again, of the size
that it has learned.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF

import threading
import weakref

from ndx._arenas.arena cimport Arena
from ndx._array.storage cimport BaseArray
from ndx._blocks.block cimport Block, block_incref, block_is_usable
from ndx._context.context cimport (
    Context, Entry, Scope, before, drop_entry, end_left, outer_backend,
    placing_backend, top_context,
)
from ndx._context.scopes cimport (
    abandon, has_ended, has_gone, leave_scope, own_context, push,
    ready_context,
)
from ndx._lib.collector cimport pause_collector, resume_collector, scope_ended
from ndx._lib.free_threading cimport (
    NDX_FREE_THREADED, ndx_get_time, ndx_load_int, ndx_store_count, ndx_store_int,
)
from ndx._lib.guards cimport Damage, described
from ndx._lib.interpreter cimport Here, current_place, current_task, is_here
from ndx._lib.unraisable cimport report_ignored
from ndx._workspaces.slots cimport Row, Slots, counters_of
from ndx.backends.base cimport Backend
from ndx.backends.persistent_file cimport FileBackend

from ndx._lib.errors import WorkspaceError
from ndx._lib.sizes import format_size, parse_size
from ndx._lib.text import preformatted
from ndx._lib.trees import leaves
from ndx._lib.weak import members
from ndx._lib.functions import decorated
from ndx._workspaces.listing import table_of
from ndx._workspaces.owners import all_workspaces, named_workspaces
from ndx.backends._pressure import HeldArena, innermost, set_held_arenas

__all__ = ["Workspace"]


cdef extern from *:
    """
    #include "ndx/internal/free_threading.h"
    #include "ndx/internal/clock.h"
    #ifdef Py_GIL_DISABLED
    static void ndx_pause(void) {
        Py_BEGIN_ALLOW_THREADS
        struct timespec wait = {0, 50000};
        nanosleep(&wait, NULL);
        Py_END_ALLOW_THREADS
    }
    #else
    static void ndx_pause(void) { }
    #endif
    """
    void pause "ndx_pause"() noexcept

cdef enum:
    PATIENCE = 100_000           # pauses of 50 us or more


# ---- Families ------------------------------------------------------------------------
# Siblings are made for tasks that are inside at the same time. A free sibling is used
# again, so that there are never more of them than tasks were inside at once.

cdef class Member(Scope):
    """Base class of workspaces: a member of the family of its name."""

    cdef tuple family(self):
        """Return the members of the family, the first one first."""
        cdef Member first = self
        cdef list siblings = None
        with cython.critical_section(self):
            reference = self.first
        if reference is not None:
            first = reference()
        if first is not None:
            with cython.critical_section(first):
                siblings = first.siblings
        return (self,) if siblings is None else (first, *siblings)

    cdef tuple peers(self):
        return self.family() if self.related else (self,)

    cdef Member entered_here(self):
        """Return the member that this thread or task has entered; None: no member."""
        cdef Member each
        for each in self.peers():
            if each.is_entered_here():
                return each
        return None

    cdef bint is_entered_here(self):
        cdef Entry entry = self.last_entry()
        cdef Context context
        if entry is None or not NDX_FREE_THREADED:
            return entry is not None and is_here(entry.context)
        # Its context may be another thread's, which changes at any time.
        context = top_context()
        while context is not None and <void *>context != <void *>entry.context:
            context = before(context)
        return context is not None and is_here(context)

    cdef int add_sibling(self, Member made) except -1:
        """Make another workspace a sibling of this one, the first of its family."""
        if self.siblings is None:
            with cython.critical_section(self):
                self.siblings = []
        made.first = weakref.ref(self)
        made.place = 1
        if self.siblings:
            made.place += (<Member>self.siblings[len(self.siblings) - 1]).place
        self.siblings.append(made)
        self.related = made.related = True
        return 0

    cdef int leave_family(self) except -1:
        """Remove this sibling from its family: undo `add_sibling`."""
        cdef Member first = self.family()[0]
        if first is not self:
            first.siblings.remove(self)
            first.related = len(first.siblings) > 0
        self.stand_alone()
        all_workspaces.discard(self)
        return 0

    cdef int stand_alone(self) except -1:
        """Make this a workspace without a family."""
        with cython.critical_section(self):
            self.first = None
        self.related = False
        ndx_store_int(&self.place, 0)
        return 0


# ---- Results of decorated functions --------------------------------------------------

cdef object detach_results(Arena arena, object result):
    """Move the arrays in a function's result out of the scope that it ran in.

    `arena` is the scope's; None for a workspace without an arena.
    """
    if arena is not None:
        rescue_from(arena, result)
        if arena.mirror is not None:
            rescue_from(arena.mirror, result)
    return result


cdef int rescue_from(Arena arena, object result) except -1:
    cdef dict found = arrays_in(arena, result)
    cdef Backend outside = outer_backend()
    cdef Block **blocks
    cdef Py_ssize_t count = 0
    cdef BaseArray x
    if not found:
        return 0
    blocks = <Block **>PyMem_RawMalloc(len(found) * sizeof(Block *))
    if blocks == NULL:
        raise MemoryError("no memory to detach a result")
    try:
        for x in found.values():
            blocks[count] = x.block
            block_incref(x.block)
            count += 1
        arena.move_out(blocks, count, outside)
    finally:
        PyMem_RawFree(blocks)
    return 0


cdef dict arrays_in(Arena arena, object result):
    """Return one array of each block of an arena in a nested result."""
    cdef BaseArray x
    cdef dict found = {}
    for leaf in (result,) if isinstance(result, BaseArray) else leaves(result):
        if isinstance(leaf, BaseArray):
            x = leaf
            if block_is_usable(x.block) and x.block.parent == <PyObject *>arena:
                found[<size_t>x.block] = x
    return found


# ---- Workspaces ----------------------------------------------------------------------

# The token of functions that may make a workspace.
cdef object maker = object()


@cython.binding(False)
@cython.embedsignature(True)
cdef class Workspace(Member):
    """A cyclic arena: what is made in its scope is reclaimed when that ends.

    Made by `ndx.workspace`. It belongs to the thread that made it. Its tasks share it,
    one after the other; a task that enters it while another is inside gets a sibling:
    another arena with the same name, config and learned size.
    """

    def __cinit__(self, token=None, name=None, backend=None, config=None,
                  bypassed=False, Workspace like=None):
        if token is not maker:
            raise TypeError("make a workspace by ndx.workspace(name, ...)")
        self.name = name
        self.config = config
        self.base = config
        self.bypassed = bypassed
        self.spare = Entry(None)
        if config.path is not None and not bypassed:
            self.file = FileBackend(config.path, config.size, config.max_size)
        self.owner_id = current_place().thread
        self.owner = weakref.ref(threading.current_thread())
        self.slots = Slots(name, config, self.file, bypassed,
                           None if like is None else like.slots.sizing)
        self.slots.use(self.slots.on(backend))
        self.arena = self.slots.current()

    # ------------------------------------------------------------------ its family

    cdef Workspace enter_family(self, const Here *here):
        """Enter this task's member of the family; make a sibling if there is none."""
        cdef Workspace each = self.entered_here()
        if each is not None:
            return each.enter(here)
        self.check_owner(here)
        if not depth_of(self):
            return self.enter(here)
        for each in self.family():
            if not depth_of(each) and not ndx_get_time(&each.busy):
                return each.enter(here)
        each = self.new_sibling()
        try:
            return each.enter(here)
        except BaseException:
            each.leave_family()
            raise

    cdef Workspace new_sibling(self):
        cdef Workspace first = self.family()[0], made
        if first.file is not None:
            raise WorkspaceError(
                f"{first} can't be entered: another task is in a scope of it, and the "
                "file that it lies in can't be shared. Let one task end before the "
                "next, or take a workspace with another path for each")
        made = make_workspace(first.name, first.backend, first.config, first.bypassed,
                              first)
        made.follows = first.follows
        made.base = first.base
        first.add_sibling(made)
        return made

    # ------------------------------------------------------------------ scopes

    def __enter__(self) -> Self:
        # Called before the place is read: this gives the thread or task a home, if it
        # has none.
        ready_context()
        cdef Here here = current_place()
        if depth_of(self) or self.related:
            return self.enter_family(&here)
        return self.enter(&here)

    cdef Workspace enter(self, const Here *here):
        cdef Entry entry = self.spare
        cdef bint paused
        # Usually the thread or task is that of the last entry.
        if self.owner_id != here.thread or self.last_home != here.home or (
                self.task is not None and has_gone(self.task)):
            self.note_task(here)
        if not depth_of(self):
            if not try_claim(self):
                self.claim("entered")
            if not self.bypassed:
                self.start()
        # Code that ran until here may have left the scope that was current.
        paused = pause_collector()
        try:
            if depth_of(self):
                # The workspace is open here already: its cycle goes on.
                entry = Entry(self, self.arena)
            else:
                entry.arena = self.arena
                entry.scope = self
            if entry.task is not self.task:
                with cython.critical_section(entry):
                    entry.task = self.task
            push(own_context(), entry, self, here)
            ndx_store_count(&self.depth, depth_of(self) + 1)
        finally:
            resume_collector(paused)
            if not depth_of(self):
                # There was no memory for a context of this task: the cycle ends.
                self.end_cycle(outer_backend())
            elif depth_of(self) == 1:
                unclaim(self)
        return self

    cdef int note_task(self, const Here *here) except -1:
        """Record the task that enters; raise in a thread that may not enter."""
        if not depth_of(self):
            self.check_owner(here)
        task = current_task()
        self.task = None if task is None else weakref.ref(task)
        self.last_home = here.home
        return 0

    cdef int start(self) except -1:
        """Start a cycle in the next slot of a ring; or raise, and change nothing.

        The caller has claimed the workspace; it is not claimed after an error.
        """
        cdef Slots slots = self.slots
        cdef Row row = slots.now
        cdef Backend backend
        cdef Arena arena = self.arena
        cdef bint failed = True
        try:
            backend = next_backend(self)
            if row.has_memory and row.backend is backend and not slots.ring:
                # The usual case: the same arena as in the last cycle.
                arena.prepare()
            else:
                arena = slots.prepare(backend)
            failed = False
        finally:
            # Not `except`, which saves the current exception each time.
            if failed:
                unclaim(self)
        if self.arena is not arena:
            self.arena = arena
        arena.begin()
        return 0

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        try:
            leave_scope(self, kind)
        except Exception as failure:
            # A failure at the end must not hide an exception of the scope.
            if error is None or isinstance(failure, WorkspaceError):
                raise
            report_ignored(self, failure)

    cdef int left(self, Entry entry, Backend outside) except -1:
        drop_entry(entry)
        if depth_of(self) == 1:
            while not try_claim(self) and NDX_FREE_THREADED:
                # Another thread has claimed it, and finds that it is open.
                pause()
        ndx_store_count(&self.depth, depth_of(self) - 1)
        if not depth_of(self):
            self.end_cycle(outside)
        return 0

    cdef int end_cycle(self, Backend outside) except -1:
        """End the cycle, which the caller has claimed: reclaim its arrays' memory."""
        try:
            if self.bypassed:
                return 0
            self.arena.finish()
            if not self.slots.ring:
                self.arena.expire(outside)
                self.arena.fit()
        finally:
            unclaim(self)
        scope_ended()
        return 0

    # A workspace that no thread is in belongs to the thread that starts or ends a
    # cycle, or that takes its memory away: that has claimed it.

    cdef int claim(self, str what) except -1:
        """Claim the workspace; wait for another thread that has, but raise in its own.

        What another thread does may take long, or wait for this one: it does not wait
        for ever.
        """
        for _ in range(PATIENCE if NDX_FREE_THREADED else 1):
            if try_claim(self):
                return 0
            if ndx_get_time(&self.busy) == claimant():
                break
            pause()
        raise WorkspaceError(
            f"{self} can't be {what} while a scope of it starts or ends (by a "
            "finalizer, or a backend that runs Python)")

    cdef int claim_closed(self, str what) except -1:
        """Claim a workspace of which no scope is open; or raise."""
        if not depth_of(self):
            self.claim(what)
            if not depth_of(self):
                return 0
            unclaim(self)
        raise WorkspaceError(
            f"{self} can't be {what} while a scope of it is open; leave it first")

    cdef int check_owner(self, const Here *here) except -1:
        if self.owner_id == here.thread:
            return 0
        if self.is_left_open:
            raise WorkspaceError(
                f"{self} can't be entered: the thread that is in a scope of it has "
                "ended; destroy it, or use another")
        raise WorkspaceError(
            f"{self} {'is open in' if depth_of(self) else 'belongs to'} another "
            "thread; each has its own of every name: ask ndx.workspace(name) there")

    def borrow(self) -> AbstractContextManager[Workspace]:
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

    def __call__(self, function: AnyFunction) -> AnyFunction:
        """Return a function whose calls run in a scope, and whose result is detached.

        Parameters
        ----------
        function : callable
            A function or coroutine function. Generator functions are refused: their
            scope would end before they run.

        Returns
        -------
        callable
            Each thread that calls it has its own workspace. Arrays in the result (in
            tuples, lists, dicts, sets, deques, dataclasses, nested) leave the
            workspace: views go on sharing memory, spilled arrays are not copied. Those
            in other objects go stale.

        Raises
        ------
        TypeError
            If it is no such function.
        """
        return decorated(function, lambda: self.own(), "ndx.workspace", rescued)

    cdef Workspace own(self):
        """Return this workspace; in another thread, the one of its name there."""
        cdef Workspace found
        if self.owner_id == current_place().thread:
            return self
        named = named_workspaces()
        found = named.get(self.name)
        if found is None:
            found = make_workspace(self.name, self.backend, self.config, self.bypassed,
                                   None)
            found.follows = self.follows
            found.base = self.base
            found.registry = weakref.ref(named)
            named[self.name] = found
        return found

    # --------------------------------------------------------------- management

    def initialize(self) -> None:
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
        cdef Workspace each
        cdef list family = claimed_family(self, "sized")
        try:
            self.slots.sizing.settle()
            for each in family:
                each.slots.fit()
        finally:
            unclaim_all(family)

    def reserve(self, nbytes: Size) -> None:
        """Give the arena at least `nbytes` from now on; not while a scope is open.

        Parameters
        ----------
        nbytes : int or str
            The least size of the arena (of each slot of a ring), on the backend where
            the next cycle would be. What cycles need beyond that is learned as ever.

        Raises
        ------
        ValueError
            If that is more than ``max_size``.
        OutOfMemoryError
            If there is no such memory; the arena is as it was then.
        WorkspaceError
            If a scope of it is open, or its file is read by foreign code.

        Examples
        --------
        >>> import ndx
        >>> ws = ndx.workspace("warm")
        >>> ws.reserve("1MiB")
        >>> ws.size
        1048576
        >>> ws.destroy()
        """
        cdef size_t size = parse_size(nbytes, "nbytes")
        self.claim_closed("enlarged")
        try:
            self.slots.reserve(next_backend(self), size)
            self.arena = self.slots.current()
        finally:
            unclaim(self)

    def flush(self) -> None:
        """Wait until all that was written to the workspace's file is on disk.

        Raises
        ------
        WorkspaceError
            If it has no file, or is that of the process of which this is a fork.
        OSError
            If the disk fails; it names the file.
        """
        if self.file is None or self.file.file.fd < 0:
            raise WorkspaceError(
                f"{self} can't be flushed: it lies in no file; give it a path=")
        self.file.flush()

    def close(self) -> None:
        """Give the workspace's memory back, as `destroy`, unless something uses it.

        After this a workspace's file can be deleted, or used by another.

        Raises
        ------
        BufferError
            If a NumPy view, a buffer or a DLPack capsule of an array of a past cycle
            is alive; nothing is changed then.
        WorkspaceError
            If a scope of it is open, in a thread or task that has not ended.
        """
        cdef Workspace each
        self.end_abandoned("closed")
        for each in self.family():
            if each.slots.is_read():
                raise BufferError(
                    f"{self} can't be closed: a NumPy view, a buffer or a DLPack "
                    "capsule of an array in it is alive; close it when that is gone")
        self.destroy()

    def destroy(self, *, trim: bool = True) -> None:
        """Give the workspace's memory back; forget its name and what it learned.

        Its siblings are destroyed, too. Arrays of a ring go stale. Memory that foreign
        code still reads stays until that ends. Entered again, the workspace starts
        anew.

        Parameters
        ----------
        trim : bool
            Whether the backends give all that is idle in their pools to the system;
            False: the memory stays in the pools, for what is made next.

        Raises
        ------
        WorkspaceError
            If a scope of it is open, in a thread or task that has not ended.
        """
        cdef Workspace each, first
        cdef Backend backend
        cdef list relatives
        self.end_abandoned("destroyed")
        relatives = claimed_family(self, "destroyed")
        first = relatives[0]
        named = None if first.registry is None else first.registry()
        if named is not None and named.get(first.name) is first:
            del named[first.name]
        with cython.critical_section(first):
            first.siblings = None
        used = {}
        try:
            for each in relatives:
                each.stand_alone()
                for backend in each.slots.rows:
                    used[backend] = None
                each.slots.give_back()
                if each.file is not None:
                    each.file.leave()
        finally:
            unclaim_all(relatives)
        if trim:
            for backend in used:
                backend.trim()

    cdef int end_abandoned(self, str what) except -1:
        """End scopes whose thread or task has ended; raise, first, if any is open."""
        cdef Workspace each
        cdef Entry entry
        # Those of this thread that another one has left end now.
        end_left()
        for each in self.family():
            for entry, scope in each.entries():
                if not has_ended(entry):
                    abandon(scope, entry)
        for each in self.family():
            while depth_of(each):
                for entry, scope in each.entries()[:1]:
                    abandon(scope, entry)
            each.claim_closed(what)
            unclaim(each)
        return 0

    cdef list entries(self):
        """Return the entries that have not ended, the last one first; their scopes."""
        cdef Entry entry
        cdef list found = []
        with cython.critical_section(self):
            entry = self.top
            while entry is not None:
                found.append((entry, entry.scope))
                entry = entry.before
        return found

    @property
    def size(self) -> int:
        """Bytes of the arena (of all slots); 0 while that is still to be learned.

        A size that was given counts, though it may be taken only by the first cycle.
        """
        return self.slots.size()

    @property
    def backend(self) -> Backend:
        """The backend of the workspace's memory, in the current or last cycle."""
        return self.slots.row().backend

    @property
    def generation(self) -> int:
        """The generation of arrays made now; each cycle (of a slot) is a new one."""
        cdef Arena arena = self.slots.current()
        return 0 if arena is None else ndx_get_time(&arena.clock.now)

    @property
    def number(self) -> int:
        """The number among the siblings; 0 is the workspace that the name finds."""
        return ndx_load_int(&self.place)

    @property
    def is_open(self) -> bool:
        """Whether a scope of the workspace is open now."""
        if depth_of(self):
            # One that was left in another thread ends now.
            end_left()
        return depth_of(self) > 0

    @property
    def is_open_here(self) -> bool:
        """Whether this thread or task is in a scope of it, or of a sibling.

        `is_open` is also true while another task is in one.
        """
        return self.entered_here() is not None

    @property
    def is_left_open(self) -> bool:
        """Whether the workspace is open in a thread or task that has ended."""
        cdef Entry entry = self.last_entry()
        return entry is not None and has_ended(entry)

    @property
    def thread(self) -> threading.Thread | None:
        """The `threading.Thread` that owns the workspace; None when that is gone."""
        return self.owner()

    @property
    def parent(self) -> Workspace | None:
        """The workspace that was current where this one was entered; None: none."""
        cdef list found = self.entries()
        return workspace_of((<Entry>found[len(found) - 1][0]).lower) if found else None

    @property
    def pinned_count(self) -> int:
        """How many blocks of memory from past cycles are still in use.

        Foreign code reads them (NumPy views, buffers, DLPack capsules), or arrays that
        left the workspace in place keep them.
        """
        cdef Arena arena
        cdef Py_ssize_t count = 0
        for arena in self.slots.all():
            count += arena.pinned_count
            if arena.mirror is not None:
                count += arena.mirror.pinned_count
        return count

    def owns(self, x: NDArray, /) -> bool:
        """Return whether an array that may be used is in this workspace.

        Parameters
        ----------
        x : NDArray

        Returns
        -------
        bool
            False for arrays that are stale, that are independent, or that are in
            another workspace of the same name (of another thread, or a sibling).

        Raises
        ------
        TypeError
            If `x` is no NDArray.

        Examples
        --------
        >>> import ndx
        >>> with ndx.workspace("step") as ws:
        ...     x = ndx.ones(3)
        ...     ws.owns(x), ws.owns(x.detach())
        (True, False)
        >>> ws.owns(x)
        False
        """
        cdef Arena arena
        cdef BaseArray array
        if not isinstance(x, BaseArray):
            raise TypeError(f"a workspace owns NDArrays, not {type(x).__name__}")
        array = x
        if array.block.clock == NULL or not block_is_usable(array.block):
            return False
        for arena in self.slots.all():
            if array.block.parent == <PyObject *>arena or (
                    arena.mirror is not None
                    and array.block.parent == <PyObject *>arena.mirror):
                return True
        return False

    def stats(self) -> dict[str, int]:
        """Return what the workspace holds, as a dict of bytes and counts.

        Returns
        -------
        dict
            ``size`` of the arena (of all slots); ``mirror_bytes`` of its mirror on the
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
        return counters_of(self.slots, depth_of(self) > 0)

    def __reduce__(self):
        raise TypeError(
            f"{self} can't be pickled: it belongs to a thread or task. Pickle its "
            "config, and ask ndx.workspace(name, config=...) where it is needed")

    def __repr__(self):
        state = "open" if depth_of(self) else "closed"
        return (f"<Workspace {self.name!r}: {format_size(self.size)}, {state}, "
                f"generation {self.generation}>")

    def _repr_html_(self) -> str:
        """Return the display in a notebook: its line of `memory.workspace_summary`."""
        return preformatted(table_of([self]))


@cython.binding(False)
@cython.embedsignature(True)
cdef class Borrowed(Scope):
    """The scope of `Workspace.borrow`."""

    cdef readonly Workspace workspace

    def __cinit__(self, Workspace workspace not None):
        self.workspace = workspace

    def __enter__(self):
        cdef Workspace found
        cdef Entry entry
        cdef bint paused
        ready_context()
        cdef Here here = current_place()
        self.find_open().note_task(&here)
        paused = pause_collector()
        try:
            found = self.find_open()
            # Borrowing is an entry, too: the workspace stays open until the last entry
            # ends.
            entry = Entry(self, found.arena)
            entry.task = found.task
            push(own_context(), entry, found, &here)
            ndx_store_count(&found.depth, depth_of(found) + 1)
        finally:
            resume_collector(paused)
        return found

    cdef Workspace find_open(self):
        """Return the member of the family that this task has entered; or raise."""
        cdef Workspace found = self.workspace.entered_here()
        if found is None:
            raise WorkspaceError(
                f"{self.workspace} can't be borrowed: no scope of it is open here. "
                "Enter it first: with ndx.workspace(name): ...")
        return found

    def __exit__(self, kind, error, traceback):
        leave_scope(self, kind)

    cdef int left(self, Entry entry, Backend outside) except -1:
        # Kept here, because the entry forgets its owner.
        cdef Scope owner = entry.owner
        return owner.left(entry, outside)

    cdef tuple owners(self):
        return self.workspace.peers()

    def __repr__(self):
        return f"<borrowed {self.workspace!r}>"


cdef list claimed_family(Workspace workspace, str what):
    """Claim a workspace and its siblings, of which no scope is open; or raise."""
    cdef Workspace each
    cdef list claimed = []
    try:
        for each in workspace.family():
            each.claim_closed(what)
            claimed.append(each)
    except BaseException:
        unclaim_all(claimed)
        raise
    return claimed


cdef int unclaim_all(list workspaces) except -1:
    cdef Workspace each
    for each in workspaces:
        unclaim(each)
    return 0


cdef inline Backend next_backend(Workspace scope):
    """Return the backend on which a cycle that starts now has its arena."""
    return placing_backend() if scope.follows else scope.slots.now.backend


cdef Workspace make_workspace(str name, object backend, object config, bint bypassed,
                              Workspace like):
    """Return a new workspace of this thread."""
    cdef Workspace made = Workspace.__new__(Workspace, maker, name, backend, config,
                                            bypassed, like)
    all_workspaces.add(made)
    return made


cdef Workspace workspace_of(Entry entry):
    """Return the workspace that was entered, or borrowed; None for other scopes."""
    if entry is None or not isinstance(entry.owner, Workspace):
        return None
    return entry.owner


cdef object rescued(Workspace scope, object result):
    return detach_results(scope.arena, result)


# ---- Idle memory: the arenas of closed workspaces ------------------------------------
# A workspace whose arena went starts its next cycle by taking one again, of the size
# that it has learned.

cdef bint is_idle(Workspace workspace, Arena arena) noexcept:
    """Whether no block lies in an arena of a workspace, nor is about to.

    An arena that has had no cycle yet was set aside for the first. On a GPU a captured
    graph may write to an arena at any time. An arena in a file has content.
    """
    return depth_of(workspace) == 0 and arena.size != 0 and not arena.used \
        and arena.has_no_pinned() and arena.counts.cycles > 0 \
        and not arena.backend.device_number and arena.mirror is None \
        and arena.home is arena.backend


def held_arenas() -> list[Any]:
    """Return a `HeldArena` for each arena of a workspace that has memory."""
    cdef Workspace workspace
    cdef Arena arena
    cdef list found = []
    cdef bint idle
    for workspace in members(all_workspaces):
        for arena in workspace.slots.all():
            if not arena.size:
                continue
            idle = False
            if try_claim(workspace):
                idle = is_idle(workspace, arena)
                unclaim(workspace)
            found.append(HeldArena(
                workspace.name, innermost(arena.owning_backend()),
                arena.chunk.nbytes, <size_t>arena.chunk.ptr,
                depth_of(workspace) > 0, idle, arena.counts.cycles,
                releaser(workspace, arena)))
    return found


def damage_in_arenas() -> tuple[list[Any], bool]:
    """Return what was written behind blocks in arenas; whether any has guards."""
    cdef Workspace workspace
    cdef Arena arena
    cdef Damage some[8]
    cdef list found = []
    cdef int count, i
    cdef bint guarded = False
    for workspace in members(all_workspaces):
        for arena in workspace.slots.all():
            guarded = guarded or arena.guarded
            count = 8
            while count == 8:
                count = arena.find_damage(some, 8)
                for i in range(count):
                    found.append(described(
                        &some[i], arena.owning_backend().name, workspace.name))
                    Py_XDECREF(some[i].origin)
    return found, guarded


cdef object releaser(Workspace workspace, Arena arena):
    """Return the function that gives the memory of an arena back, if it is idle."""
    def release():
        cdef size_t size = 0
        if try_claim(workspace):
            try:
                if is_idle(workspace, arena):
                    size = arena.size
                    arena.drop_chunk()
            finally:
                unclaim(workspace)
        return size
    return release


set_held_arenas(held_arenas)

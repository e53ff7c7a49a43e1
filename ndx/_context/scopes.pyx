"""Entering and leaving scopes: a state machine for each entry, in one table.

Entering a scope makes an entry. The table ``RULES`` gives the next state and the action
for each state and event. The position of an entry tells whether it is innermost or
covered. Its fields tell the other states.
"""

cimport cython
from cpython.contextvars cimport PyContextVar_Set
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx._context.context cimport (
    Context, Entry, Scope, backend_of, before, end_left, last_context, late,
    top_context, variable,
)
from ndx._lib.collector cimport pause_collector, resume_collector
from ndx._lib.free_threading cimport (
    NDX_FREE_THREADED, ndx_load_flag, ndx_set_flag, ndx_swap_flag, ndx_up_time,
)
from ndx._lib.interpreter cimport (
    Here, PyThreadState_Get, PyThreadState_GetID, current_home, current_place,
    home_is_context, home_of, is_here, is_running, note_running, set_home,
)
from ndx._lib.numpy_allocator cimport restore_numpy
from ndx._lib.unraisable cimport graver

from ndx._lib.errors import WorkspaceError

cdef enum State:
    OUT              # not entered, or left
    INNERMOST        # no scope is open within it, in its thread or task
    COVERED          # a scope is open within it
    EARLY            # covered, and its exit has come
    SETTLED          # ended, and an exit may still come

cdef enum Event:
    ENTER
    COVER            # a scope is entered within it
    UNCOVER          # the last scope within it has ended
    LEAVE            # its exit comes, in its own thread or task
    CLOSE            # its exit comes in another thread or task, by GeneratorExit
    INTRUDE          # its exit comes in another thread or task, by anything else
    INHERIT          # its exit comes after its thread or task has ended
    DESTROY          # its workspace is to be destroyed
    RECLAIM          # as DESTROY, after its thread or task has ended

cdef enum Action:
    PASS
    PUSH
    END              # the scope ends: the last entry of a workspace ends its cycle
    REFUSE           # raise WorkspaceError

cdef struct Rule:
    State next
    Action action

STATES = ("out", "innermost", "covered", "early", "settled")
EVENTS = ("enter", "cover", "uncover", "leave", "close", "intrude", "inherit",
          "destroy", "reclaim")
ACTIONS = ("pass", "push", "end", "refuse")

RULES = (
    # state, event -> next state, action
    ("out", "enter", "innermost", "push"),
    ("out", "leave", "out", "refuse"),
    ("innermost", "cover", "covered", "pass"),
    ("innermost", "leave", "out", "end"),
    ("innermost", "close", "out", "end"),
    ("innermost", "intrude", "innermost", "refuse"),
    ("innermost", "inherit", "out", "end"),
    ("innermost", "destroy", "innermost", "refuse"),
    ("innermost", "reclaim", "settled", "end"),
    ("covered", "cover", "covered", "pass"),
    ("covered", "uncover", "innermost", "pass"),
    ("covered", "leave", "early", "refuse"),
    ("covered", "close", "out", "end"),
    ("covered", "intrude", "covered", "refuse"),
    ("covered", "inherit", "out", "end"),
    ("covered", "destroy", "covered", "refuse"),
    ("covered", "reclaim", "settled", "end"),
    ("early", "cover", "early", "pass"),
    ("early", "uncover", "settled", "end"),
    ("early", "leave", "early", "refuse"),
    ("early", "close", "out", "end"),
    ("early", "intrude", "early", "refuse"),
    ("early", "inherit", "out", "end"),
    ("early", "destroy", "early", "refuse"),
    ("early", "reclaim", "settled", "end"),
    ("settled", "leave", "out", "pass"),
)

cdef Rule[5][9] table


cdef int read_rules() except -1:
    """Fill the table of rules. A pair without a rule can't happen, and is refused."""
    cdef int state, event
    for state in range(5):
        for event in range(9):
            table[state][event] = Rule(<State>state, REFUSE)
    for row in RULES:
        table[STATES.index(row[0])][EVENTS.index(row[1])] = Rule(
            <State><int>STATES.index(row[2]), <Action><int>ACTIONS.index(row[3]))
    return 0


read_rules()


# ------------------------------------------------------------------------ entering


# Number of entries made so far.
cdef uint64_t made = 0


cdef int enter_context(Context context) except -1:
    """Make a context the current one of this thread or task.

    The collector waits meanwhile: a finalizer could leave the context that is current.
    """
    cdef bint paused
    note_running()
    paused = pause_collector()
    try:
        return set_context(context)
    finally:
        resume_collector(paused)


cdef int set_context(Context context) except -1:
    cdef Here here
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
        # CPython may fail to make the token after it has set the variable.
        if top_context() is not context:
            raise
    # Only now: setting the variable creates a thread's first contextvars.Context.
    here = current_place()
    set_home(context, here.home)
    if context.gate is not None:
        add_entry(context, context.gate, context.gate.scope, &here)
    return 0


cdef Context own_context():
    """Return the current context if this task may push entries to it, else a new one.

    Pushing an entry does not set the variable, which is slow. A context without entries
    belongs to no task yet. If another task has entries in it, this one gets a context
    of its own, and keeps it.

    The caller pushes it at once: any Python that runs before could leave the context.
    """
    cdef Context context = last_context()
    cdef Context made
    cdef bint paused
    if context is not None and (is_here(context) or take_home(context)):
        return context
    paused = pause_collector()
    try:
        made = Context(None if context is None else context.backend)
        set_context(made)
    finally:
        resume_collector(paused)
    set_home(made, NULL)
    made.previous = None
    return made


cdef Context ready_context():
    """Return `own_context()`, where Python may run; a scope is about to be entered."""
    if NDX_FREE_THREADED:
        note_running()
    end_left()
    return own_context()


cdef inline bint take_home(Context context):
    """Let a context without entries be that of this task; False: it is another's."""
    if not NDX_FREE_THREADED:
        return context.home is None
    with cython.critical_section(context):
        if home_of(context) != NULL:
            return False
        set_home(context, current_home())
    return True


# Entries whose exits came in another thread than their own.
cdef list left_elsewhere = []


cdef int end_late() except -1:
    """End the scopes of this thread, and of ended ones, that were left elsewhere."""
    cdef Entry entry
    cdef Event event
    cdef uint64_t here = PyThreadState_GetID(PyThreadState_Get())
    for entry in list(left_elsewhere):
        event = CLOSE if entry.thread == here else INHERIT
        if event == INHERIT and not has_ended(entry):
            continue
        try:
            left_elsewhere.remove(entry)
        except ValueError:
            # Another thread ends it.
            continue
        if entry.scope is not None:
            obey(entry.scope, entry, event)
    ndx_set_flag(&late.any, False)
    if left_elsewhere:
        # Another thread may have added one.
        ndx_set_flag(&late.any, True)
    return 0


late.end = end_late


cdef inline void add_entry(Context context, Entry entry, Scope owner,
                           const Here *here) noexcept:
    """Record the frame and thread that enter, and add the entry to the scope's list."""
    entry.serial = ndx_up_time(&made)
    entry.frame = here.frame
    entry.code = here.code
    entry.thread = here.thread
    entry.early = entry.ending = False
    entry.context = context
    entry.owner = owner
    # Threads may share a scope, and look for entries of others.
    with cython.critical_section(owner):
        entry.before = owner.top
        owner.top = entry


cdef int push(Context context, Entry entry, Scope owner, const Here *here) noexcept:
    """Make an entry the innermost one of a context of this task: ENTER."""
    if home_of(context) == NULL:
        set_home(context, here.home)
    add_entry(context, entry, owner, here)
    entry.lower = context.top
    if entry.arena is not None and entry.arena.backend.device_number:
        # The CPU's arrays come from the same arena as outside of the entry.
        entry.on_device = entry.arena
        entry.arena = None if context.top is None else context.top.arena
    else:
        # A workspace reuses its entry, whose last cycle may have been on a device.
        entry.on_device = None
    context.top = entry
    return 0


cdef void unlink_entry(Entry entry) noexcept:
    """Remove an entry, innermost or not, from its context."""
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
    if context.top is None and context.gate is None:
        set_home(context, NULL)
        if context.hollow:
            context.abandoned = True


# ------------------------------------------------------------------------- leaving

cdef int leave_scope(Scope scope, object kind) except -1:
    """Handle an exit from a scope: find the entry that it ends, and apply the table."""
    cdef Here here = current_place()
    cdef Context context = top_context()
    cdef Entry entry
    cdef Event event = LEAVE
    cdef bint paused
    if context is not None and home_of(context) == here.home:
        entry = innermost(context)
        if entry is not None and entry.scope is scope and \
                is_of(entry, &here) and scope.settled is None:
            # Fast path for the usual case: innermost, leave -> out, end.
            return end(entry, True, True)
    paused = pause_collector()
    try:
        entry = find_here(context, scope, &here)
        if entry is None:
            entry = find_elsewhere(scope, &here)
            if entry is not None:
                event = INHERIT if has_ended(entry) else \
                    CLOSE if kind is GeneratorExit else INTRUDE
    finally:
        resume_collector(paused)
    if NDX_FREE_THREADED:
        if event == CLOSE and entry.thread != here.thread:
            # Its own thread ends it, as soon as it looks for its scopes.
            if not may_end(entry, False):
                return obey(scope, entry, event)
            if take(entry):
                left_elsewhere.append(entry)
                ndx_set_flag(&late.any, True)
            return 0
        if event == INHERIT and not take(entry):
            return 0
    return obey(scope, entry, event)


cdef bint take(Entry entry):
    """Whether this thread is the first to leave an entry that is not its own."""
    return ndx_swap_flag(&entry.ending, False, True)


cdef int obey(Scope scope, Entry entry, Event event) except -1:
    """Apply the table's rule to an entry; None: no entry was found."""
    cdef State state = state_of(entry, event)
    cdef Rule rule = table[<int>state][<int>event]
    cdef bint paused
    if rule.action == REFUSE:
        if rule.next == EARLY:
            entry.early = True
        raise refusal(scope, state, event)
    if state == SETTLED:
        forget_settled(entry)
    elif not may_end(entry, event == LEAVE):
        entry.ending = False
        raise WorkspaceError(
            f"{scope} can't be left in another thread or task: it is for NumPy, too "
            "(numpy=True), whose own setting belongs there; nothing was changed. "
            "Close it where it was entered")
    else:
        if rule.next == SETTLED:
            # The exit may come in any thread, from a generator's owner for example.
            paused = pause_collector()
            try:
                settle(entry, NULL)
            finally:
                resume_collector(paused)
        end(entry, event == LEAVE, state == INNERMOST)
    return 0


cdef State state_of(Entry entry, Event event):
    if entry is None or entry.scope is None:
        return OUT
    if entry.context is None:
        return SETTLED
    if NDX_FREE_THREADED and event in (INTRUDE, DESTROY):
        # Refused in any case; only its own thread may look at its contexts.
        return COVERED
    if innermost(top_of(entry.context.home, entry.context)) is entry:
        return INNERMOST
    return EARLY if entry.early else COVERED


cdef object refusal(Scope scope, State state, Event event):
    """Return the error of an exit that the table refuses."""
    cdef Context context = top_context()
    cdef Entry entry = None if context is None else innermost(context)
    if event == DESTROY:
        return WorkspaceError(
            f"{scope} can't be destroyed while a scope of it is open; leave it first")
    if event == LEAVE and state != OUT:
        return WorkspaceError(
            f"{scope} was left out of order: the innermost scope here is "
            f"{entry.scope}; nothing was changed, and it is left when that is. "
            "Leave scopes in the reverse order in which they were entered.")
    inner = "none" if entry is None else entry.scope
    inherited = context is not None and not is_here(context)
    return WorkspaceError(
        f"{scope} was left out of order: it was not entered in this thread or task, "
        f"where the innermost scope is {inner}{' (inherited)' * inherited}; nothing "
        "was changed. Leave scopes where they were entered, in the reverse order. What "
        "a generator left open is ended there by scope.__exit__(None, None, None).")


# ---------------------------------------------------------- which entry an exit is for
#
# An exit ends the last entry that the same frame (of a function, a generator or a
# coroutine) made. Without one (as with ExitStack) it ends the last entry of all.
# Among these, entries that are early already come last.

cdef inline bint is_of(Entry entry, const Here *here) noexcept:
    """Whether a frame made an entry.

    An address is that of a later frame, too, once the first is gone: for example, of
    ExitStack's `__exit__` after its `enter_context`. These run different code.
    """
    return entry.frame == here.frame and entry.code == here.code


cdef Entry better(Entry best, Entry entry, tuple peers, const Here *here):
    if entry is None or entry.scope not in peers:
        return best
    if best is None:
        return entry
    if is_of(best, here) != is_of(entry, here):
        return entry if is_of(entry, here) else best
    if best.early != entry.early:
        return best if entry.early else entry
    return entry if entry.serial > best.serial else best


cdef Entry find_here(Context context, Scope scope, const Here *here):
    """Return the entry of this thread or task that an exit ends; None without one."""
    cdef tuple peers = scope.peers()
    cdef Entry best = None, entry
    cdef Scope peer
    while context is not None:
        if home_of(context) == here.home:
            entry = context.top
            while entry is not None:
                best = better(best, entry, peers, here)
                entry = entry.lower
            best = better(best, context.gate, peers, here)
        context = before(context)
    for peer in peers:
        with cython.critical_section(peer):
            entry = peer.settled
            while entry is not None:
                # A thread that never entered a scope has no home.
                if is_of(entry, here) if entry.home == NULL else \
                        entry.home == here.home:
                    best = better(best, entry, peers, here)
                entry = entry.before
    return best


cdef Entry find_elsewhere(Scope scope, const Here *here):
    """Return the entry of any thread or task that an exit ends; None without one."""
    cdef tuple peers = scope.peers()
    cdef Entry best = None, entry
    cdef Scope owner
    for owner in scope.owners():
        # Their own threads drop entries at any time: the list as a whole is read.
        with cython.critical_section(owner):
            entry = owner.top
            while entry is not None:
                if not ndx_load_flag(&entry.ending):
                    best = better(best, entry, peers, here)
                entry = entry.before
    return best


cdef Entry innermost(Context context):
    """Return the innermost entry of a context; None without one."""
    if context is None:
        return None
    return context.gate if context.top is None else context.top


cdef Context top_of(object home, Context known):
    """Return the context that is current in any home.

    If the home is not a contextvars.Context, nothing outside of it can tell. A context
    that was current in it stands in for the one that is.
    """
    cdef Context context
    if home_is_context:
        context = home.get(variable)
    elif <PyObject *>home == current_home():
        context = top_context()
    else:
        return known
    return before(context) if context is not None and context.abandoned else context


cdef bint has_ended(Entry entry) noexcept:
    """Whether the thread or task that made an entry is gone."""
    if not is_running(entry.thread):
        return True
    with cython.critical_section(entry):
        task = entry.task
    return task is not None and has_gone(task)


cdef bint has_gone(object reference):
    """Whether the task of a weak reference has ended."""
    task = reference()
    return task is None or task.done()


# -------------------------------------------------------------- the end of an entry

cdef int end(Entry entry, bint here, bint uncovers) except -1:
    """End an entry, and then the entries it uncovers whose exits came too early."""
    cdef Context context = entry.context
    cdef object home = context.home
    cdef const void *place = home_of(context)
    error = None
    while True:
        try:
            end_entry(entry, here)
        except BaseException as raised:
            error = graver(error, raised)
        if not uncovers:
            break
        context = top_context() if here else top_of(home, context)
        # Another thread may take an inherited context that has no entries.
        if context is None or home_of(context) != place:
            break
        entry = innermost(context)
        if entry is None or not entry.early or not may_end(entry, here):
            break
        # Early, uncover -> settled, end.
        if entry.ending:
            # Its last exit has come, in another thread.
            continue
        try:
            settle(entry, <void *>home)
        except MemoryError as raised:
            error = graver(error, raised)
    if error is not None:
        raise error
    return 0


cdef int abandon(Scope scope, Entry entry) except -1:
    """End an entry of a workspace to be destroyed, if its thread or task has ended."""
    cdef bint ended = has_ended(entry)
    if NDX_FREE_THREADED and ended and not take(entry):
        # It was left, or another thread ends it.
        end_left()
        return 0
    return obey(scope, entry, RECLAIM if ended else DESTROY)


cdef int end_entry(Entry entry, bint here) except -1:
    """End one entry. It is removed even if an exception is raised."""
    cdef Context context = entry.context
    cdef Scope scope = entry.scope
    if entry is not context.gate:
        unlink_entry(entry)
    elif here:
        remove(context)
    else:
        hollow_out(context)
    return scope.left(entry, backend_of(context))


cdef bint may_end(Entry entry, bint here) noexcept:
    """Whether an entry may end: NumPy's handler is restored only where it was set."""
    return here or entry is not entry.context.gate or \
        entry.context.numpy_before is None


cdef int settle(Entry entry, void *home) except -1:
    """Remember that an exit of an ended entry may come, from one home; NULL: from any.

    After an early call of `__exit__` within a `with` statement, an exit comes again.
    After the early exit of a generator, none comes, so only the last 16 are kept.
    """
    cdef Scope scope = entry.scope
    cdef Entry mark = Entry(scope)
    mark.frame = entry.frame
    mark.code = entry.code
    mark.serial = entry.serial
    mark.home = home
    add_settled(scope, mark)
    return 0


cdef void add_settled(Scope scope, Entry mark) noexcept:
    cdef Py_ssize_t count = 16
    with cython.critical_section(scope):
        mark.before = scope.settled
        scope.settled = mark
        while mark is not None and count:
            count -= 1
            if count == 0:
                mark.before = None
            mark = mark.before


cdef void forget_settled(Entry mark) noexcept:
    cdef Scope scope = mark.scope
    cdef Entry above
    with cython.critical_section(scope):
        above = scope.settled
        if above is mark:
            scope.settled = mark.before
        else:
            while above is not None and above.before is not mark:
                above = above.before
            if above is not None:
                above.before = mark.before


cdef void remove(Context context) noexcept:
    """Make the previous context current again."""
    cdef bint paused = pause_collector()
    restore_numpy(context.numpy_before)
    try:
        PyContextVar_Set(variable, context.previous)
    except MemoryError:
        # Leaving must not fail. The context stays the variable's value, but is skipped.
        context.abandoned = True
    set_home(context, NULL)
    context.gate = None
    resume_collector(paused)


cdef void hollow_out(Context context) noexcept:
    """Empty a context whose `use` was left in another thread or task.

    The variable can't be reset there, so the context serves as the one before it. It is
    abandoned as soon as it has no entries.
    """
    cdef object home = context.home
    context.gate = None
    context.hollow = True
    if context.top is None:
        set_home(context, NULL)
        context.abandoned = True
    serve_as_before(top_of(home, context), home)


cdef void serve_as_before(Context context, object home) noexcept:
    """Let the hollow contexts of a home serve as the first other one below them."""
    cdef Context inner = context, outer
    while inner is not None:
        outer = inner
        while outer is not None and outer.hollow and outer.home is home:
            outer = before(outer)
        while inner is not None and inner is not outer:
            inner.backend = None if outer is None else outer.backend
            inner.host = None if outer is None else outer.host
            inner.numpy = None if outer is None else outer.numpy
            inner = before(inner)
        if inner is not None:
            inner = before(inner)

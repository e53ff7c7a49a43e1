"""Recordings: the events of blocks, and the call stacks that made them.

Without a recording, the rest of the package pays one test of a pointer for each new
array, and one test of a number for each block that ends. The number, a serial, is
assigned at the birth of a block. Recordings keep numbers and strings, no arrays.
"""

cimport cython
from cpython.mem cimport (
    PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc,
)
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_DECREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import threading
import weakref

from ndx._arenas.arena cimport Arena
from ndx._array.storage cimport BaseArray, set_announce
from ndx._blocks.block cimport (
    ESCAPED, IN_OBJECTS, MOVED, Block, BlockParent, block_lock, block_note,
    block_serial, block_unlock, ndx_set_cycled, observers,
)
from ndx._context.context cimport placing_backend, scope_of
from ndx._lib.clock cimport ndx_nanoseconds
from ndx._lib.collector cimport pause_collector, resume_collector
from ndx._lib.dtypes cimport NDTYPES, dtype_object
from ndx._lib.layout cimport shape_tuple
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport raise_later
from ndx._recording.call_stacks cimport CallStacks
from ndx._workspaces.workspace cimport Workspace
from ndx.backends.base cimport Backend, Counters


# ---- The log: events in the order of time, in plain memory ---------------------------
# Writing to a log runs no Python, so it is allowed while an array dies. A log keeps the
# newest events: when it is full, it forgets the arrays that died first, and if that
# frees little, the older half of what is no array's. Without a GIL, a lock guards all
# logs, the serials, and the tuple of the open recordings.

cdef extern from *:
    """
    #include "ndx/internal/free_threading.h"
    #ifdef Py_GIL_DISABLED
    static ndx_lock ndx_logs;
    static void ndx_lock_logs(void) { ndx_lock_acquire(&ndx_logs); }
    static void ndx_unlock_logs(void) { ndx_lock_release(&ndx_logs); }
    static int ndx_guard_logs(void) {
        return ndx_at_fork(ndx_lock_logs, ndx_unlock_logs);
    }
    #else
    static inline void ndx_lock_logs(void) { }
    static inline void ndx_unlock_logs(void) { }
    static inline int ndx_guard_logs(void) { return 0; }
    #endif
    """
    void lock_logs "ndx_lock_logs"() noexcept
    void unlock_logs "ndx_unlock_logs"() noexcept
    int guard_logs "ndx_guard_logs"() noexcept

if guard_logs() != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")


cdef enum:
    FORGOTTEN = 255              # a kind


@cython.binding(False)
@cython.embedsignature(True)
cdef class Log:
    """Events of one recording.

    Parameters
    ----------
    limit : int
        The most events to keep, not counting the deaths of recorded arrays.
    """

    def __cinit__(self, size_t limit):
        self.limit = limit
        self.begin = self.complete_from = ndx_nanoseconds()

    def __dealloc__(self):
        PyMem_RawFree(self.events)

    def now(self):
        """Return the time now, in nanoseconds of the log's clock."""
        return ndx_nanoseconds()

    cdef bint append(self, const Event *event) noexcept:
        """Add an event; return False if there is no room.

        The caller has set all fields except `mark`. The `subject` of a birth is greater
        than those of all births before.
        """
        cdef Event *added
        if self.full or (self.count >= self.limit and not self.make_room()) or \
                (self.count >= self.room and not self.resize(2 * self.room + 64)):
            self.missed += event.kind == BIRTH
            return False
        added = &self.events[self.count]
        added[0] = event[0]
        if event.kind == BIRTH:
            self.last = event.subject
        added.mark = self.last
        self.count += 1
        return True

    cdef bint note_death(self, const Event *event) noexcept:
        """Add a later event of a recorded block (its death, ...), despite the limit.

        There is at most one event of each kind per birth, so the log stays bounded.
        """
        cdef Event *added
        if self.count >= self.room and not self.resize(2 * self.room + 64):
            return False
        added = &self.events[self.count]
        added[0] = event[0]
        added.mark = self.last
        self.count += 1
        if event.kind == DEATH:
            self.deaths += 1
            if self.full and self.deaths > self.limit // 8:
                self.full = False
                self.complete_from = event.time
        return True

    cdef Event *find(self, uint64_t serial) noexcept:
        """Return the birth of a block, or NULL if it is not recorded."""
        cdef size_t low = 0, high = self.count, middle
        while low < high:
            middle = (low + high) // 2
            if self.events[middle].mark < serial:
                low = middle + 1
            else:
                high = middle
        # The first event with this mark is the birth itself.
        if low < self.count and self.events[low].kind == BIRTH \
                and self.events[low].subject == serial:
            return &self.events[low]
        return NULL

    cdef bint resize(self, size_t room) noexcept:
        cdef void *events = PyMem_RawRealloc(self.events, room * sizeof(Event))
        if events == NULL:
            return False
        self.events = <Event *>events
        self.room = room
        return True

    cdef bint make_room(self) noexcept:
        """Forget the oldest events; return False if that frees too little room.

        If nearly all arrays are alive, each of the next births would search again in
        vain: none is recorded then until some have died.
        """
        cdef size_t before = self.count
        self.dropped += self.forget()
        self.squeeze()
        if before - self.count <= self.limit // 8:
            self.forget_others()
            self.squeeze()
        self.full = before - self.count <= self.limit // 8
        return not self.full

    cdef size_t forget(self) noexcept:
        """Mark the arrays of the first half of the deaths; return their number.

        Before the last of these deaths, the log then has only events of arrays that
        were still alive.
        """
        cdef size_t i, deaths = 0, wanted = (self.deaths + 1) // 2
        cdef Event *event
        cdef Event *birth
        for i in range(self.count):
            event = &self.events[i]
            if event.kind == DEATH:
                if deaths == wanted:
                    break
                birth = self.find(event.subject)
                # The mark, by which `find` searches, does not change.
                if birth != NULL:
                    birth.ending = FORGOTTEN
                event.kind = FORGOTTEN
                self.complete_from = event.time
                deaths += 1
        for i in range(self.count):
            event = &self.events[i]
            if event.kind == BIRTH and event.ending == FORGOTTEN:
                event.kind = FORGOTTEN
            elif event.kind == STALE:
                birth = self.find(event.subject)
                if birth == NULL or birth.ending == FORGOTTEN:
                    event.kind = FORGOTTEN
            elif event.time < self.complete_from and event.kind != BIRTH and \
                    event.kind != DEATH:
                event.kind = FORGOTTEN
        self.deaths -= deaths
        return deaths

    cdef void forget_others(self) noexcept:
        """Mark the older half of the events of scopes and backends."""
        cdef size_t i, others = 0, wanted
        cdef Event *event
        for i in range(self.count):
            others += is_other(&self.events[i])
        wanted = others // 2
        for i in range(self.count):
            event = &self.events[i]
            if wanted and is_other(event):
                event.kind = FORGOTTEN
                self.complete_from = event.time
                wanted -= 1

    cdef void squeeze(self) noexcept:
        """Remove the marked events, and close the gaps."""
        cdef size_t i, kept = 0
        for i in range(self.count):
            if self.events[i].kind != FORGOTTEN:
                self.events[kept] = self.events[i]
                kept += 1
        self.count = kept

    def live_by_stack(self, int32_t backend, size_t nstacks):
        """Return (stack, bytes, number) of recorded memory of a backend that lives."""
        cdef size_t i
        cdef Event *birth
        # Sums of bytes and numbers. No Python runs until the events were read: it could
        # log more.
        cdef int64_t *sums = \
            <int64_t *>PyMem_RawCalloc(2 * nstacks + 1, sizeof(int64_t))
        if sums == NULL:
            raise MemoryError(f"no memory for the sums of {nstacks} stacks")
        lock_logs()
        for i in range(self.count):
            birth = &self.events[i]
            if birth.kind == DEATH:
                birth = self.find(birth.subject)
            elif birth.kind != BIRTH:
                continue
            if birth == NULL or birth.backend != backend or birth.stack < 0 \
                    or <size_t>birth.stack >= nstacks:
                continue
            if self.events[i].kind == BIRTH:
                sums[2 * birth.stack] += <int64_t>birth.nbytes
                sums[2 * birth.stack + 1] += 1
            else:
                sums[2 * birth.stack] -= <int64_t>birth.nbytes
                sums[2 * birth.stack + 1] -= 1
        unlock_logs()
        found = []
        try:
            for i in range(nstacks):
                if sums[2 * i + 1] > 0:
                    found.append((i, sums[2 * i], sums[2 * i + 1]))
        finally:
            PyMem_RawFree(sums)
        return found

    def rows(self):
        """Return all events as tuples, in the order of the fields of ``Event``."""
        cdef size_t i, count
        cdef Event *e
        cdef list rows = []
        # Read from a copy: making tuples may run the collector, which may log more.
        cdef Event *events
        lock_logs()
        count = self.count
        events = <Event *>PyMem_RawMalloc((count + 1) * sizeof(Event))
        if events != NULL:
            memcpy(events, self.events, count * sizeof(Event))
        unlock_logs()
        if events == NULL:
            raise MemoryError(f"no memory for a copy of {count} events")
        try:
            for i in range(count):
                e = &events[i]
                rows.append((
                    e.kind, e.time, e.subject, e.before, e.nbytes, e.address,
                    e.allocated, e.reserved, e.generation, e.backend, e.workspace,
                    e.stack, e.shape, e.thread, e.dtype, e.place, e.ending))
        finally:
            PyMem_RawFree(events)
        return rows


cdef inline bint is_other(const Event *event) noexcept:
    """Whether an event is of a scope or a backend."""
    return ENTER <= event.kind <= LEAVE or SAMPLE <= event.kind <= END_PHASE


# ---- The recorder --------------------------------------------------------------------

cdef extern from "ndx/internal/interpreter.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyThreadState_Get() noexcept
    uint64_t PyThreadState_GetID(PyThreadState *) noexcept
    PyObject *ndx_weak_target(PyObject *reference) noexcept     # a new one

# The open recordings. The tuple is replaced, so that loops over it keep the old one.
cdef tuple active = ()
cdef uint64_t last_serial = 0


@cython.binding(False)
@cython.embedsignature(True)
cdef class Recorder(CallStacks):
    """One recording: a log, and the tables that its events index.

    Parameters
    ----------
    limit : int
        The most events that the log keeps.
    depth : int
        The most lines to keep of the call stack that made an array.
    """

    cdef readonly Log log
    cdef readonly list backends      # (weak reference, name, limit)
    cdef readonly list workspaces    # [clock, slot or None]
    cdef readonly list threads       # names
    cdef readonly list shapes
    cdef readonly list phases        # names
    cdef readonly list dtypes        # names, indexed by ndx's codes
    cdef bint open

    def __cinit__(self, size_t limit, Py_ssize_t depth):
        self.log = Log(limit)
        self.depth = depth
        self.backends, self.workspaces, self.threads = [], [], []
        self.shapes, self.phases = [], []
        self.dtypes = [dtype_object(code).name for code in range(NDTYPES)]

    def start(self):
        """Start to record."""
        self.open = True
        self.sample(placing_backend())
        replace_active(None, self)

    def stop(self):
        """End the recording; its log and tables stay."""
        if not self.open:
            return
        replace_active(self, None)
        for reference, _, _ in self.backends:
            backend = reference()
            if backend is not None:
                self.sample(backend)
        lock_logs()
        self.open = False
        self.log.end = ndx_nanoseconds()
        unlock_logs()

    cdef int sample(self, Backend backend) except -1:
        """Log the counters of a backend."""
        cdef Event event
        blank(&event, SAMPLE)
        event.backend = self.backend_number(backend)
        read_counters(backend, &event)
        self.note(&event)
        return 0

    def note_phase(self, str name, bint begins):
        """Log that a named part of the program begins or ends in this thread."""
        cdef Event event
        cdef object key = ("phase", name)
        cdef object number = self.numbers.get(key)
        blank(&event, BEGIN_PHASE if begins else END_PHASE)
        event.workspace = self.add(key, self.phases, name) if number is None else number
        event.thread = self.thread_number()
        self.note(&event)

    cdef void note(self, Event *event) noexcept:
        """Log an event that is no block's, while the recording is open."""
        lock_logs()
        event.time = ndx_nanoseconds()
        if self.open:
            self.log.append(event)
        unlock_logs()

    # ---------------------------------------------------------------- the tables

    cdef int32_t backend_number(self, Backend backend) except -2:
        cdef object key = <size_t><PyObject *>backend
        cdef object found = self.numbers.get(key)
        if found is not None:
            if self.backends[found][0]() is backend:
                return found
            # The address is that of a backend that is gone.
            self.numbers.pop(key, None)
        return self.add(
            key, self.backends, (weakref.ref(backend), backend.name, backend.limit))

    cdef int32_t workspace_number(self, Arena arena) except -2:
        cdef object key = ("clock", <size_t><PyObject *>arena.clock)
        cdef object number = self.numbers.get(key)
        if number is None:
            number = self.add(key, self.workspaces, [arena.clock, None])
        if self.workspaces[number][1] is None:
            self.workspaces[number][1] = slot_of(arena)
        return number

    cdef int32_t thread_number(self) except -2:
        # Thread identifiers are reused, unlike the IDs of thread states.
        cdef object key = ("thread", PyThreadState_GetID(PyThreadState_Get()))
        cdef object number = self.numbers.get(key)
        if number is None:
            number = self.add(key, self.threads, thread_name())
        return number

    cdef int32_t shape_number(self, BaseArray x) except -2:
        shape = shape_tuple(x.ndim, x.shape)
        number = self.numbers.get(shape)
        if number is None:
            number = self.add(shape, self.shapes, shape)
        return number

    cdef int describe(self, Event *event, BaseArray x, Backend backend,
                      Arena arena) except -1:
        """Fill in the fields that are looked up in tables; this may run Python."""
        event.backend = self.backend_number(backend)
        event.thread = self.thread_number()
        if self.depth:
            event.stack = self.stack_number()
        if x is not None:
            event.shape = self.shape_number(x)
            event.dtype = x.dtype
        if arena is not None:
            event.workspace = self.workspace_number(arena)
            event.generation = arena.clock.now
        return 0


cdef tuple open_recordings():
    cdef tuple found
    lock_logs()
    found = active
    unlock_logs()
    return found


cdef int replace_active(Recorder ended, Recorder begun) except -1:
    """Take a recorder out of the open ones, or add one."""
    global active
    cdef tuple before, found
    while True:
        before = open_recordings()
        found = tuple([other for other in before if other is not ended])
        if begun is not None:
            found = (*found, begun)
        lock_logs()
        if active is before:
            # What was there goes when the lock is free.
            before, active = active, found
            if len(found):
                set_announce(note_birth)
                ndx_set_cycled(&observers.cycled, note_cycle)
            else:
                set_announce(NULL)
                ndx_set_cycled(&observers.cycled, NULL)
            unlock_logs()
            return 0
        unlock_logs()


def recorders():
    """Return the open recordings, in the order in which they began."""
    return open_recordings()


def recorded_makers(Backend backend not None):
    """Return (line, bytes, number) of the makers of a backend's live memory.

    The first of the open recordings tells; there are none without a recording.
    """
    cdef Recorder recorder
    cdef dict sums = {}
    cdef tuple recorders = open_recordings()
    if not recorders:
        return []
    recorder = recorders[0]
    number = recorder.numbers.get(<size_t><PyObject *>backend)
    if number is None:
        return []
    stacks = recorder.stacks
    for stack, nbytes, count in recorder.log.live_by_stack(number, len(stacks)):
        if stacks[stack]:
            line = recorder.lines[stacks[stack][0]]
            before = sums.get(line, (0, 0))
            sums[line] = (before[0] + nbytes, before[1] + count)
    return [(line, *sums[line]) for line in sums]


cdef object slot_of(Arena arena):
    """Return the slot of a ring to which an arena belongs, or None if there is none."""
    cdef Workspace workspace
    scope = scope_of(arena)
    if not isinstance(scope, Workspace):
        return None
    workspace = <Workspace>scope
    if not workspace.slots.ring:
        return None
    return [other is arena for other in workspace.slots.now.arenas].index(True)


cdef object thread_name():
    ident = PyThread_get_thread_ident()
    for thread in threading.enumerate():
        if thread.ident == ident:
            return thread.name
    return f"thread {ident}"


cdef inline void blank(Event *event, int kind) noexcept:
    memset(event, 0, sizeof(Event))
    event.kind = kind
    event.backend = event.workspace = event.stack = event.shape = event.thread = -1
    event.dtype = -1


cdef inline void read_counters(Backend backend, Event *event) noexcept:
    cdef Counters counters
    backend.read_counters(&counters)
    event.allocated = counters.allocated
    event.reserved = counters.reserved


cdef Arena arena_of(Block *block):
    """Return the arena in whose cycle a block was made, or None."""
    if block.parent == NULL or not isinstance(<object>block.parent, Arena):
        return None
    return <Arena>block.parent


# ---------------------------------------------------------- events of blocks

cdef void note_birth(BaseArray x) noexcept:
    cdef Event event
    cdef Block *block = x.block
    cdef Arena arena
    cdef Backend backend
    if block.nbytes == 0 or block.holding == IN_OBJECTS or block_note(block) == NULL:
        # In its object, if a recording began while it was made.
        return
    blank(&event, BIRTH)
    event.nbytes = block.nbytes
    event.address = <size_t>block.ptr
    arena = arena_of(block)
    backend = arena.owning_backend() if block.backend == NULL \
        else <Backend>block.backend
    if arena is not None:
        event.place = IN_ARENA if block.backend == NULL else SPILLED
    block.note.serial = log_birth(&event, x, backend, arena)


cdef uint64_t log_birth(const Event *known, BaseArray x, Backend backend,
                        Arena arena) noexcept:
    """Log a birth in all recordings; return its serial."""
    global last_serial
    cdef tuple recorders = open_recordings()
    cdef Recorder recorder
    cdef Py_ssize_t i, count = len(recorders)
    cdef uint64_t serial
    cdef Event now
    cdef PendingError pending
    cdef Event *events = <Event *>malloc((count + 1) * sizeof(Event))
    if events == NULL:
        return 0
    pending = set_error_aside()
    # The steps that may run Python come first, because Python may make arrays, too.
    # From the serial on no Python runs: the serials of a log must increase.
    for i in range(count):
        events[i] = known[0]
        recorder = <Recorder>recorders[i]
        try:
            recorder.describe(&events[i], x, backend, arena)
        except BaseException as error:
            # No memory for a table's entry: log the fields that are known.
            raise_later(error)
    read_counters(backend, &now)
    lock_logs()
    last_serial += 1
    serial = last_serial
    now.time = ndx_nanoseconds()
    for i in range(count):
        recorder = <Recorder>recorders[i]
        if recorder.open:
            events[i].subject = serial
            events[i].time = now.time
            events[i].allocated = now.allocated
            events[i].reserved = now.reserved
            recorder.log.append(&events[i])
    unlock_logs()
    free(events)
    put_error_back(pending)
    return serial


cdef void note_later(uint64_t serial, int kind, int ending) noexcept:
    """Log a later event of a block, without running Python."""
    cdef Recorder recorder
    cdef Event birth
    for recorder in open_recordings():
        if copy_birth(recorder, serial, &birth):
            note_later_in(recorder, &birth, kind, ending)


cdef void note_later_in(Recorder recorder, const Event *birth, int kind,
                        int ending) noexcept:
    cdef Event event
    blank(&event, kind)
    event.subject = birth.subject
    event.ending = ending
    event.backend = birth.backend
    event.thread = birth.thread
    sample_known(recorder, &event)
    lock_logs()
    event.time = ndx_nanoseconds()
    # It may have been forgotten meanwhile.
    if recorder.open and recorder.log.find(event.subject) != NULL:
        recorder.log.note_death(&event)
    unlock_logs()


cdef bint copy_birth(Recorder recorder, uint64_t serial, Event *out) noexcept:
    """Copy the birth of a block; return False if it is not recorded."""
    cdef Event *birth
    lock_logs()
    birth = recorder.log.find(serial)
    if birth != NULL:
        out[0] = birth[0]
    unlock_logs()
    return birth != NULL


cdef void sample_known(Recorder recorder, Event *event) noexcept:
    """Read the counters of an event's backend, unless the backend is gone."""
    cdef PyObject *backend
    if event.backend < 0:
        return
    backend = ndx_weak_target(<PyObject *>recorder.backends[event.backend][0])
    if backend != NULL:
        read_counters(<Backend>backend, event)
        Py_DECREF(<object>backend)


cdef void note_end(uint64_t serial, int ending) noexcept:
    note_later(serial, DEATH, ending)


cdef void note_retired(uint64_t serial) noexcept:
    note_later(serial, STALE, 0)


cdef void note_moved(Block *block) noexcept:
    """Log that a block left its workspace or backend: a death, and a birth elsewhere.

    The collector is off meanwhile: no array may die while a scope ends.
    """
    global last_serial
    cdef tuple recorders = open_recordings()
    cdef Recorder recorder
    cdef Event *events
    cdef Py_ssize_t i, count = len(recorders)
    cdef uint64_t old = block_serial(block)
    cdef PyObject *backend
    cdef bint paused
    events = <Event *>malloc((count + 1) * sizeof(Event))
    if events == NULL:
        return
    paused = pause_collector()
    block_lock(block)
    backend = block.backend
    Py_XINCREF(backend)
    block_unlock(block)
    for i in range(count):
        recorder = <Recorder>recorders[i]
        if not copy_birth(recorder, old, &events[i]):
            events[i].kind = FORGOTTEN
            continue
        note_later_in(recorder, &events[i], DEATH,
                      MOVED if events[i].workspace < 0 else ESCAPED)
        events[i].before = old
        events[i].address = <size_t>block.ptr
        events[i].workspace = -1
        events[i].generation = 0
        events[i].place = LEFT_BEHIND
        try:
            if backend != NULL:
                events[i].place = IN_BACKEND
                events[i].backend = recorder.backend_number(<Backend>backend)
        except BaseException as error:
            raise_later(error)
            events[i].backend = -1
        sample_known(recorder, &events[i])
    lock_logs()
    last_serial += 1
    block.note.serial = last_serial
    for i in range(count):
        recorder = <Recorder>recorders[i]
        if events[i].kind != FORGOTTEN and recorder.open:
            events[i].subject = last_serial
            events[i].time = ndx_nanoseconds()
            recorder.log.append(&events[i])
    unlock_logs()
    free(events)
    Py_XDECREF(backend)
    resume_collector(paused)


cdef void note_cycle(BlockParent owner, bint begins) noexcept:
    """Log that a scope of a workspace begins or ends."""
    cdef Arena arena = <Arena>owner
    cdef tuple recorders = open_recordings()
    cdef Recorder recorder
    cdef Event event
    cdef PendingError pending
    pending = set_error_aside()
    for recorder in recorders:
        blank(&event, ENTER if begins else LEAVE)
        try:
            event.backend = recorder.backend_number(arena.home)
            event.workspace = recorder.workspace_number(arena)
            event.thread = recorder.thread_number()
        except BaseException as error:
            raise_later(error)
            continue
        event.generation = arena.clock.now
        event.nbytes = arena.size
        read_counters(arena.home, &event)
        recorder.note(&event)
    put_error_back(pending)


# ------------------------------------------------------------ the data of NumPy arrays

cdef uint64_t record_range(char *ptr, size_t nbytes, Backend backend) noexcept:
    """Log the birth of a range of NumPy's; return its serial, or 0 if not recorded."""
    cdef Event event
    if observers.cycled == NULL:
        # No recording is open.
        return 0
    blank(&event, BIRTH)
    event.nbytes = nbytes
    event.address = <size_t>ptr
    event.place = BY_NUMPY
    return log_birth(&event, None, backend, None)


cdef void range_freed(uint64_t serial) noexcept:
    """Log that NumPy freed a recorded range."""
    note_later(serial, DEATH, 0)


cdef void range_adopted(uint64_t serial, BaseArray x) noexcept:
    """Log that a recorded range is now the block of an array of ours."""
    cdef Arena arena = arena_of(x.block)
    cdef tuple recorders = open_recordings()
    cdef Recorder recorder
    cdef Event known
    cdef Event *birth
    if block_note(x.block) == NULL:
        return
    x.block.note.serial = serial
    for recorder in recorders:
        blank(&known, BIRTH)
        try:
            known.shape = recorder.shape_number(x)
            known.dtype = x.dtype
            if arena is not None:
                known.workspace = recorder.workspace_number(arena)
        except BaseException as error:
            raise_later(error)
            continue
        lock_logs()
        birth = recorder.log.find(serial)
        if birth != NULL:
            birth.shape = known.shape
            birth.dtype = known.dtype
            if arena is not None:
                birth.workspace = known.workspace
                birth.generation = arena.clock.now
                birth.place = SPILLED
            else:
                birth.place = IN_BACKEND
        unlock_logs()


observers.ended = note_end
observers.moved = note_moved
observers.retired = note_retired

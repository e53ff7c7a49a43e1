"""The log of a recording: events in the order of time, in plain memory.

Writing to a log runs no Python, so it is allowed while an array dies. A log keeps the
newest events: when it is full, it forgets the arrays that died first, and if that frees
little, the older half of what is no array's.
"""

cimport cython
from cpython.mem cimport (
    PyMem_RawCalloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc,
)
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy

cdef extern from "ndx/internal/clock.h":
    int64_t ndx_nanoseconds() noexcept

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

    def close(self):
        """Set the end time of the recording."""
        self.end = ndx_nanoseconds()

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
        cdef size_t i, count = self.count
        cdef Event *birth
        # Sums of bytes and numbers. No Python runs until the events were read: it could
        # log more.
        cdef int64_t *sums = \
            <int64_t *>PyMem_RawCalloc(2 * nstacks + 1, sizeof(int64_t))
        if sums == NULL:
            raise MemoryError(f"no memory for the sums of {nstacks} stacks")
        for i in range(count):
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
        cdef size_t i, count = self.count
        cdef Event *e
        cdef list rows = []
        # Read from a copy: making tuples may run the collector, which may log more.
        cdef Event *events = <Event *>PyMem_RawMalloc((count + 1) * sizeof(Event))
        if events == NULL:
            raise MemoryError(f"no memory for a copy of {count} events")
        memcpy(events, self.events, count * sizeof(Event))
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
    return event.kind == ENTER or event.kind == LEAVE or event.kind == SAMPLE

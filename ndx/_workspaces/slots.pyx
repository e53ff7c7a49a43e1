"""The arenas of a workspace: one, or one for each slot of a ring; on a few backends."""

cimport cython

import dataclasses

from ndx._arenas.arena cimport Arena, BumpArena, FileArena, lines, pinned_bytes
from ndx._arenas.liveness cimport PlannedArena
from ndx._context.context cimport outer_backend
from ndx._lib.free_threading cimport (
    ndx_load_count, ndx_load_flag, ndx_store_count, ndx_store_flag,
)
from ndx._lib.sizing cimport Sizing
from ndx._lib.unraisable cimport report_ignored
from ndx.backends.base cimport Backend

from ndx._lib.errors import OutOfMemoryError
from ndx._lib.sizes import format_size

# Backends, besides the current one, whose arenas are kept.
cdef Py_ssize_t MOST_KEPT = 3

# Counters of all cycles that there ever were.
cdef tuple EVER = ("cycles", "total_spills", "escaped_count", "escaped_bytes",
                   "departures")


cdef class Row:
    """The arenas on one backend, which the cycles there take in turn."""

    cdef int next(self) noexcept:
        """Return the slot whose turn comes next."""
        cdef Py_ssize_t turn = self.turn
        if (<Arena>self.arenas[turn]).used:
            turn = turn + 1 if turn + 1 < len(self.arenas) else 0
        return turn

    cdef int drop(self) except -1:
        """Give back the memory of arenas in which there has been no cycle yet."""
        cdef Arena arena
        ndx_store_flag(&self.has_memory, False)
        for arena in self.arenas:
            arena.drop_chunk()
        return 0


cdef class Slots:
    """The arenas that the cycles of a workspace take in turn.

    Parameters
    ----------
    name : str
        The workspace's.
    config : WorkspaceConfig
        Its policies.
    file : FileBackend, optional
        That its arena lies in.
    bypassed : bool
        Whether there are to be no arenas.
    sizing : Sizing, optional
        Of a sibling, which has learned the size.
    """

    def __cinit__(self, str name, config, file, bint bypassed, Sizing sizing):
        self.name = name
        self.config = config
        self.file = file
        self.ring = config.reset == "ring"
        self.count = 0 if bypassed else config.slots if self.ring else 1
        self.rows = {}
        self.past = dict.fromkeys(EVER, 0)
        self.sizing = sizing
        if sizing is None:
            if file is not None:
                # The arena is as long as the file, which may differ from the config.
                config = dataclasses.replace(config, size=file.size)
            self.sizing = Sizing(config)

    cdef Arena prepare(self, Backend backend):
        """Return the arena whose turn it is on a backend, ready for a cycle; or raise.

        On an error nothing is changed, except that arrays which the slot of a ring held
        may be stale.
        """
        cdef Row row = self.now
        cdef Arena arena
        cdef Py_ssize_t turn = 0
        cdef bint took_memory = False
        if backend is not row.backend:
            row = self.on(backend)
        try:
            if not row.has_memory:
                self.get_memory(row)
                took_memory = True
            if self.ring:
                turn = row.next()
            arena = row.arenas[turn]
            if arena.used:
                arena.expire(outer_backend())
            arena.prepare()
            if row is not self.now:
                self.use(row)
        except BaseException:
            if took_memory:
                row.drop()
            raise
        ndx_store_count(&row.turn, turn)
        return arena

    cdef Row on(self, Backend backend):
        """Return the row of arenas on a backend: the one of before, or a new one."""
        cdef Row row = self.rows.get(backend)
        if row is not None:
            return row
        row = Row.__new__(Row)
        row.backend = backend
        row.arenas = []
        kind = FileArena if self.file is not None else \
            PlannedArena if self.config.learn == "liveness" else BumpArena
        # No comprehension: Cython's drops an item twice if the list can't grow.
        for _ in range(self.count):
            arena = kind(self.name, backend, self.sizing, self.config, self.file)
            if self.config.mirror == "host":
                from ndx._arenas.mirror import add_mirror

                add_mirror(arena, self.config)
            row.arenas.append(arena)
        return row

    cdef int use(self, Row row) except -1:
        """Make a row of arenas the current one; or raise, and leave the current one."""
        cdef dict rows = dict(self.rows)
        cdef Row oldest = None
        rows.pop(row.backend, None)
        rows[row.backend] = row
        if len(rows) > MOST_KEPT + 1:
            oldest = rows.pop(next(iter(rows)))
        # Other threads read the counters at any time.
        with cython.critical_section(self):
            rows, self.rows = self.rows, rows
            row, self.now = self.now, row
        if oldest is not None:
            try:
                self.drop_row(oldest)
            except Exception as error:
                # An array could not be moved out, for example. The cycle starts anyway.
                report_ignored(self.name, error)
        return 0

    cdef int get_memory(self, Row row) except -1:
        """Take memory of the given size, if any, from the backend; or raise."""
        cdef Arena arena
        try:
            for arena in row.arenas:
                if self.sizing.initial and arena.size == 0:
                    arena.get_chunk(self.sizing.wanted)
        except BaseException as error:
            row.drop()
            explain(error, self.name, self.sizing.wanted, "size=")
            raise
        ndx_store_flag(&row.has_memory, True)
        ndx_store_flag(&self.gave_back, False)
        return 0

    cdef Arena current(self):
        """Return the arena of the current or last cycle."""
        cdef Row row = self.row()
        return <Arena>row.arenas[ndx_load_count(&row.turn)] if row.arenas else None

    cdef Row row(self):
        """Return the row of the current or last cycle, in any thread."""
        cdef Row row
        with cython.critical_section(self):
            row = self.now
        return row

    cdef list all(self):
        """Return the arenas on all backends, those of the current one first."""
        cdef Row row, now
        cdef dict rows
        with cython.critical_section(self):
            rows, now = self.rows, self.now
        cdef list found = list(now.arenas)
        for row in rows.values():
            if row is not now:
                found += row.arenas
        return found

    cdef int fit(self) except -1:
        """Resize the arenas that no cycle uses to the wanted size."""
        cdef Arena arena
        for arena in self.now.arenas:
            if not arena.used and (self.now.has_memory or not self.sizing.initial):
                arena.fit()
        return 0

    cdef int reserve(self, Backend backend, size_t nbytes) except -1:
        """Enlarge the arenas on a backend to `nbytes`, and make them current; or raise.

        On an error all is as before.
        """
        cdef Row row = self.now if backend is self.now.backend else self.on(backend)
        cdef size_t wanted = self.sizing.wanted
        cdef bint provisional = self.sizing.provisional
        cdef Arena arena
        cdef list sizes = [(<Arena>each).size for each in row.arenas]
        cdef size_t size
        if self.sizing.maximum and nbytes > self.sizing.maximum:
            raise ValueError(
                f"{nbytes} bytes can't be reserved in workspace {self.name!r}, whose "
                f"max_size is {self.sizing.maximum}")
        try:
            self.sizing.reserve(nbytes)
            for arena in row.arenas:
                # Slots that are in use are enlarged when their turn comes.
                if not arena.used and arena.size < self.sizing.wanted:
                    arena.resize(self.sizing.wanted)
            if row is not self.now:
                self.use(row)
        except BaseException as error:
            explain(error, self.name, self.sizing.wanted, "reserve")
            self.sizing.wanted = wanted
            self.sizing.provisional = provisional
            for arena, size in zip(row.arenas, sizes):
                if arena.size != size:
                    try:
                        arena.resize(size)
                    except MemoryError:
                        pass
            raise
        ndx_store_flag(&row.has_memory, True)
        ndx_store_flag(&self.gave_back, False)
        return 0

    cdef bint is_read(self):
        """Whether any block of a past cycle is still in use."""
        cdef Arena arena
        for arena in self.all():
            if arena.pinned_count or arena.counts.retired_bytes or (
                    arena.mirror is not None and (
                        arena.mirror.pinned_count
                        or arena.mirror.counts.retired_bytes)):
                return True
        return False

    cdef size_t size(self):
        """Return the bytes of all arenas, or those that the first cycle will take."""
        cdef Arena arena
        cdef Row now = self.row()
        cdef size_t total = 0
        for arena in self.all():
            total += arena.size
        if not ndx_load_flag(&now.has_memory) and not ndx_load_flag(&self.gave_back) \
                and now.arenas:
            total += self.count * lines(self.current(), self.sizing.initial)
        return total

    cdef int give_back(self) except -1:
        """Give all memory back, and forget the learned size, as in a new workspace."""
        self.sizing.forget()
        cdef Row row
        cdef dict rows = self.rows
        ndx_store_flag(&self.now.has_memory, False)
        ndx_store_flag(&self.gave_back, True)
        with cython.critical_section(self):
            self.rows = {self.now.backend: self.now}
        empty(self.now.arenas)
        for row in rows.values():
            if row is not self.now:
                self.drop_row(row)
        return 0

    cdef int drop_row(self, Row row) except -1:
        """Give back the memory of a row that is not used again; keep its counts."""
        cdef Arena arena
        cdef dict counts
        try:
            empty(row.arenas)
        finally:
            for arena in row.arenas:
                counts = arena.counts
                for key in EVER:
                    self.past[key] += counts[key]
        return 0


cdef int explain(object error, str name, size_t nbytes, str by) except -1:
    """Begin a backend's error with the name of the workspace that asked for memory."""
    if isinstance(error, OutOfMemoryError):
        error.args = (
            f"workspace {name!r} can't have its {format_size(nbytes)} ({by}): {error}",)
    return 0


cdef int empty(list arenas) except -1:
    """Give back the memory of arenas that no scope uses."""
    cdef Arena arena
    for arena in arenas:
        if arena.used:
            arena.expire(outer_backend())
        arena.destroy()
    return 0


# ---- The counters of all arenas, summed in one dict ----------------------------------

# Sums over all arenas, and their mirrors for what is still in use of past cycles.
cdef tuple KEPT = ("retired_bytes", "escaped_count", "escaped_bytes")
cdef tuple SUMS = ("cycles", "total_spills", "departures", *KEPT)


cdef dict counters_of(Slots slots, bint is_open):
    """Return the counters of all arenas, and those of the current or last cycle."""
    cdef Row row = slots.row()
    cdef Arena arena, now = slots.current()
    cdef dict counts = {}, total = dict.fromkeys(
        ("size", "mirror_bytes", "pinned_count", "pinned_bytes", *SUMS), 0)
    total.update(slots.past)
    last = greatest = peak = 0
    for arena in slots.all():
        counts = arena.counts
        total["size"] += arena.size
        greatest = max(greatest, counts["max_cycle_bytes"])
        peak = max(peak, counts["peak_live_bytes"])
        add(total, arena, SUMS)
        if arena.mirror is not None:
            total["mirror_bytes"] += arena.mirror.size
            add(total, arena.mirror, KEPT)
    counts = {}
    if now is not None:
        counts = now.counts
        last = counts["last_cycle_bytes"]
        if is_open and slots.ring:
            arena = row.arenas[(ndx_load_count(&row.turn) or slots.count) - 1]
            last = arena.counts.last_cycle_bytes
    return {
        "size": total["size"],
        "mirror_bytes": total["mirror_bytes"],
        "offset": 0 if now is None else now.offset,
        "slot": ndx_load_count(&row.turn),
        "cycles": total["cycles"],
        "generation": 0 if now is None else now.clock.now,
        "cycle_bytes": counts.get("cycle_bytes", 0),
        "last_cycle_bytes": last,
        "max_cycle_bytes": greatest,
        "live_bytes": counts.get("live_bytes", 0),
        "peak_live_bytes": peak,
        "spilled_count": counts.get("spilled_count", 0),
        "spilled_bytes": counts.get("spilled_bytes", 0),
        **{key: total[key] for key in (
            "total_spills", "pinned_count", "pinned_bytes", "retired_bytes",
            "escaped_count", "escaped_bytes", "departures")},
    }


cdef int add(dict total, Arena arena, tuple keys) except -1:
    """Add some of an arena's counts, and what is still in use of its past cycles."""
    cdef dict counts = arena.counts
    for key in keys:
        total[key] += counts[key]
    total["pinned_count"] += arena.pinned_count
    total["pinned_bytes"] += pinned_bytes(arena)
    return 0

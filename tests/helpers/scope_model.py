"""What scopes should do, in plain Python: who may enter and leave, and what serves.

Written from the documented rules, not from the code: one stack of entries for each
context of `contextvars`, in which everything is looked for anew each time.
"""

import dataclasses
import itertools

LINE = 64
# Exits that may come once more for entries that ended; of each scope, no more.
MOST_MARKS = 16


class Refused(Exception):
    """What ndx refuses with a WorkspaceError."""


class Failed(Exception):
    """What a backend refuses."""


@dataclasses.dataclass(eq=False, repr=False)
class Thread:
    number: int
    alive: bool = True
    names: dict = dataclasses.field(default_factory=dict)

    def __repr__(self):
        return f"thread {self.number}"


@dataclasses.dataclass(eq=False, repr=False)
class Home:
    """A thread's own context, or a copy, as a task has one.

    A copy goes on in the uses that it `inherited`, when they are left where they were
    entered, too. Where one is left elsewhere, it ends for the copies, unless they have
    entered a scope within it.
    """

    number: int
    inherited: list
    stack: list = dataclasses.field(default_factory=list)
    task: object = None

    def __repr__(self):
        return f"context {self.number}"


@dataclasses.dataclass(eq=False)
class Entry:
    scope: object
    home: Home
    thread: Thread
    frame: object
    serial: int
    space: object = None
    early: bool = False
    below: object = None
    parent: object = None
    gone: bool = False  # it ended elsewhere
    task: object = None

    @property
    def backend(self):
        return self.scope.backend

    @property
    def has_ended(self):
        """Whether nobody is left who could leave in the ordinary way."""
        return not self.thread.alive or (self.task is not None and self.task.ended)


@dataclasses.dataclass(eq=False)
class Mark:
    """An entry that has ended, and whose exit may still come: there, or anywhere."""

    scope: object
    home: Home | None
    frame: object
    serial: int
    early: bool = False


class Scope:
    """`ndx.use` or `ndx.no_workspace`."""

    gone = False

    def __init__(self, backend=None):
        self.backend = backend
        self.marks = []

    def __repr__(self):
        return f"use({self.backend})" if self.backend else "no_workspace"

    def peers(self):
        return [self]


class Borrowing(Scope):
    def __init__(self, space):
        super().__init__()
        self.space = space

    def __repr__(self):
        return f"borrowed {self.space}"


@dataclasses.dataclass(eq=False)
class Array:
    value: float
    cycle: object = None

    @property
    def is_stale(self):
        return self.cycle is not None and not self.cycle.valid


class Cycle:
    def __init__(self):
        self.valid = True
        self.in_chunk = []
        self.spilled = []


class Arena:
    """The arena of one slot: what it counts."""

    def __init__(self, size):
        self.room = size
        self.cycle = None
        self.generation = 1
        self.cycles = self.total_spills = self.escaped = self.escaped_bytes = 0
        self.forget()

    def forget(self):
        self.offset = self.bytes = self.last = self.most = self.peak = 0
        self.spills = 0

    @property
    def live(self):
        if self.cycle is None:
            return 0
        return LINE * len(self.cycle.in_chunk + self.cycle.spilled)

    def begin(self):
        self.cycle = Cycle()
        self.offset = self.bytes = self.spills = 0

    def allocate(self, array):
        if self.offset + LINE <= self.room:
            self.offset += LINE
            self.cycle.in_chunk.append(array)
        else:
            self.spills += 1
            self.total_spills += 1
            self.cycle.spilled.append(array)
        array.cycle = self.cycle
        self.bytes += LINE
        self.peak = max(self.peak, self.live)

    def finish(self):
        self.cycles += 1
        self.last = self.bytes
        self.most = max(self.most, self.bytes)

    def expire(self, escape):
        if escape:
            self.escaped += len(self.cycle.in_chunk + self.cycle.spilled)
            self.escaped_bytes += LINE * len(self.cycle.in_chunk)
            for array in self.cycle.in_chunk + self.cycle.spilled:
                array.cycle = None
        self.cycle.valid = False
        self.cycle = None
        self.generation += 1
        self.offset = 0


class Row:
    """The arenas of a workspace on one backend."""

    def __init__(self, backend, slots, size):
        self.backend = backend
        self.arenas = [Arena(size) for _ in range(slots)]
        self.turn = 0
        self.has_memory = False
        self.last = 0

    @property
    def arena(self):
        return self.arenas[self.turn]


class Family(list):
    """A workspace and its siblings."""


class Space:
    """A workspace."""

    backend = None

    def __init__(
        self, thread, backend, *, size, slots=1, escape=False, follows=True, name=None
    ):
        self.thread = thread
        self.size, self.slots, self.escape = size, slots, escape
        self.follows = follows
        self.name = name
        self.family = Family([self])
        self.marks = []
        self.entries = []
        self.rows = {}
        self.past = dict.fromkeys(
            ("cycles", "total_spills", "escaped_count", "escaped_bytes"), 0
        )
        self.row = self.on(backend)
        self.rows[backend] = self.row
        self.was_emptied = False
        self.row.has_memory = not follows

    def __repr__(self):
        number = self.family.index(self)
        return f"{self.name or 'anonymous'} ({number}) of {self.thread}"

    def on(self, backend):
        return self.rows.get(backend) or Row(backend, self.slots, self.size)

    def peers(self):
        return list(self.family)

    @property
    def is_open(self):
        return bool(self.entries)

    def start(self, backend, fails):
        row = self.on(backend) if self.follows else self.row
        if fails and not row.has_memory:
            raise Failed
        row.has_memory = True
        self.was_emptied = False
        self.rows[row.backend] = self.row = row
        if self.slots > 1:
            if row.arena.cycle is not None:
                row.turn = (row.turn + 1) % self.slots
            if row.arena.cycle is not None:
                row.arena.expire(self.escape)
        row.arena.begin()

    def finish(self):
        arena = self.row.arena
        arena.finish()
        self.row.last = arena.bytes
        if self.slots == 1:
            arena.expire(self.escape)

    def give_back(self):
        for row in self.rows.values():
            row.has_memory = False
            row.last = 0
            for arena in row.arenas:
                if arena.cycle is not None:
                    arena.expire(self.escape)
                arena.forget()
            if row is not self.row:
                for key, count in totals(row).items():
                    self.past[key] += count
        self.rows = {self.row.backend: self.row}
        self.was_emptied = True

    def promised(self):
        """Bytes of its arenas, and of those that the next cycle will take."""
        if not self.row.has_memory and not self.was_emptied:
            return self.stats()["size"] + self.slots * self.size
        return self.stats()["size"]

    def stats(self):
        now = self.row.arena
        arenas = [arena for row in self.rows.values() for arena in row.arenas]
        found = dict(self.past)
        for row in self.rows.values():
            for key, count in totals(row).items():
                found[key] += count
        held = [row for row in self.rows.values() if row.has_memory]
        return found | {
            "size": self.slots * self.size * len(held),
            "offset": now.offset,
            "slot": self.row.turn,
            "generation": now.generation,
            "cycle_bytes": now.bytes,
            "last_cycle_bytes": self.row.last,
            "max_cycle_bytes": max(arena.most for arena in arenas),
            "live_bytes": now.live,
            "peak_live_bytes": max(arena.peak for arena in arenas),
            "spilled_count": now.spills,
            "spilled_bytes": LINE * now.spills,
            "pinned_count": 0,
            "pinned_bytes": 0,
            "retired_bytes": 0,
            "mirror_bytes": 0,
            "departures": 0,
        }


def totals(row):
    return {
        "cycles": sum(arena.cycles for arena in row.arenas),
        "total_spills": sum(arena.total_spills for arena in row.arenas),
        "escaped_count": sum(arena.escaped for arena in row.arenas),
        "escaped_bytes": sum(arena.escaped_bytes for arena in row.arenas),
    }


class Model:
    """All contexts, and what is done in them."""

    def __init__(self, backend):
        self.backend = backend
        self.homes = []
        self.serials = itertools.count()

    def home(self, of=None):
        """Make a context: empty, or a copy of one."""
        inherited = []
        if of is not None:
            used = [each for each in of.stack if each.backend]
            inherited = of.inherited + used
        made = Home(len(self.homes), inherited)
        self.homes.append(made)
        return made

    # ---- what serves in a context

    def space_at(self, home):
        return home.stack[-1].space if home.stack else None

    def backend_outside(self, home):
        """Return the backend around the workspaces."""
        for each in reversed(home.inherited + home.stack):
            if each.backend and not each.gone:
                return each.backend
        return self.backend

    def settle(self, home):
        """A scope is entered that is no `use`: what was inherited holds from now on."""
        if not any(each.backend for each in home.stack):
            home.inherited = [Scope(self.backend_outside(home))]

    def backend_at(self, home):
        space = self.space_at(home)
        return self.backend_outside(home) if space is None else space.row.backend

    def make(self, home, value):
        array = Array(value)
        space = self.space_at(home)
        if space is not None:
            space.row.arena.allocate(array)
        return array

    def drop(self, array):
        cycle = array.cycle
        for arrays in () if cycle is None else (cycle.in_chunk, cycle.spilled):
            if array in arrays:
                arrays.remove(array)

    # ---- entering

    def enter(self, scope, home, thread, frame, fails=False):
        """Enter; return the workspace that was. Raises Refused or Failed."""
        space = None
        if not scope.backend:
            self.settle(home)
        if isinstance(scope, Borrowing):
            space = self.entered(scope.space, home)
            if space is None:
                raise Refused
        elif isinstance(scope, Space):
            space = self.entered(scope, home) or self.open(scope, home, thread, fails)
        entry = Entry(
            space if isinstance(scope, Space) else scope,
            home, thread, frame, next(self.serials), space,
        )  # fmt: skip
        # What is entered besides workspaces does not know of tasks.
        entry.task = home.task if space is not None else None
        entry.below = home.stack[-1] if home.stack else None
        entry.parent = self.space_at(home)
        home.stack.append(entry)
        if space is not None:
            space.entries.append(entry)
        return space

    def entered(self, space, home):
        """Return the one of a family that is entered in a context."""
        for each in space.family:
            if any(entry.home is home for entry in each.entries):
                return each
        return None

    def open(self, space, home, thread, fails):
        """Start a cycle of the one of a family that is free: asked for, or first."""
        if space.thread is not thread:
            raise Refused
        free = [each for each in (space, *space.family) if not each.is_open]
        if free:
            free[0].start(self.backend_outside(home), fails)
            return free[0]
        first = space.family[0]
        made = Space(
            thread, first.row.backend, size=first.size, slots=first.slots,
            escape=first.escape, follows=first.follows, name=first.name,
        )  # fmt: skip
        made.row.has_memory = False
        made.start(self.backend_outside(home), fails)
        made.family = space.family
        space.family.append(made)
        return made

    # ---- leaving

    def leave(self, scope, home, frame, generator=False):
        """Take an exit: that of a generator that is closed, or another."""
        peers = scope.peers()

        def found(all_of):
            mine = [each for each in all_of if each.scope in peers]
            # Of its own frame, not too early yet, the last one.
            key = lambda each: (each.frame == frame, not each.early, each.serial)  # noqa: E731
            return max(mine, key=key, default=None)

        marks = [
            mark
            for peer in peers
            for mark in peer.marks
            if mark.home is home or (mark.home is None and mark.frame == frame)
        ]
        entry = found(home.stack + marks)
        if entry is None:
            others = [each for other in self.homes for each in other.stack]
            entry = found(others)
            if entry is None or not (entry.has_ended or generator):
                raise Refused
            self.end(entry, False)
        elif isinstance(entry, Mark):
            entry.scope.marks.remove(entry)
        elif entry is home.stack[-1]:
            self.end(entry, True)
        else:
            entry.early = True
            raise Refused

    def end(self, entry, here):
        """End an entry, and what it uncovers of those whose exits came too early."""
        stack = entry.home.stack
        is_innermost = entry is stack[-1]
        self.end_one(entry, here)
        while is_innermost and stack and stack[-1].early:
            self.mark(stack[-1], entry.home)
            self.end_one(stack[-1], here)

    def end_one(self, entry, here):
        entry.gone = not here
        entry.home.stack.remove(entry)
        if entry.space is not None:
            entry.space.entries.remove(entry)
            if not entry.space.entries:
                entry.space.finish()

    def mark(self, entry, home):
        marks = entry.scope.marks
        marks.append(Mark(entry.scope, home, entry.frame, entry.serial))
        del marks[:-MOST_MARKS]

    # ---- the end of a workspace

    def destroy(self, space):
        """Destroy a family, what of it was left open by threads that ended, too."""
        family = list(space.family)
        for each in family:
            if any(not entry.has_ended for entry in each.entries):
                raise Refused
        for each in family:
            while each.entries:
                self.mark(each.entries[-1], None)
                self.end(each.entries[-1], False)
        first = family[0]
        if first.thread.names.get(first.name) is first:
            del first.thread.names[first.name]
        for each in family:
            each.family = Family([each])
            each.give_back()

"""The arenas of a workspace: one, or one for each slot of a ring; on a few backends."""

import dataclasses

from ndx._arenas.base cimport Arena, lines
from ndx._arenas.bump cimport BumpArena
from ndx._arenas.file cimport FileArena
from ndx._arenas.planned cimport PlannedArena
from ndx._arenas.sizing cimport Sizing
from ndx._arenas.twin cimport add_twin
from ndx._context cimport outer_backend
from ndx.backends.base cimport Backend

# Backends, besides the current one, whose arenas are kept.
cdef Py_ssize_t MOST_KEPT = 3


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
        self.kept = {}
        self.sizing = sizing
        if sizing is None:
            if file is not None:
                # As long as the file, which need not be what the config says.
                config = dataclasses.replace(config, size=file.size)
            self.sizing = Sizing(config)

    cdef int use(self, Backend backend) except -1:
        """Let the next cycle use arenas of a backend, made now or kept from before."""
        cdef list arenas = []
        found = self.kept.pop(backend, None)
        if found is not None:
            arenas = found[0]
        else:
            kind = FileArena if self.file is not None else \
                PlannedArena if self.config.learn == "liveness" else BumpArena
            # No comprehension: Cython's drops an item twice if the list can't grow.
            for _ in range(self.count):
                arena = kind(self.name, backend, self.sizing, self.config, self.file)
                if self.config.mirror == "host":
                    add_twin(arena, self.config)
                arenas.append(arena)
        if self.arenas:
            self.kept[self.backend] = (self.arenas, self.turn)
        self.arenas = arenas
        self.turn = 0 if found is None else found[1]
        self.backend = backend
        self.has_memory = found is not None and self.current().size > 0
        if len(self.kept) > MOST_KEPT:
            empty(self.kept.pop(next(iter(self.kept)))[0])
        return 0

    cdef int get_memory(self) except -1:
        """Take the size that was given, if any, from the backend; or raise."""
        cdef Arena arena
        try:
            for arena in self.arenas:
                if self.sizing.initial and arena.size == 0:
                    arena.get_chunk(self.sizing.wanted)
        except BaseException:
            for arena in self.arenas:
                arena.drop_chunk()
            raise
        self.has_memory = True
        self.gave_back = False
        return 0

    cdef Arena current(self):
        """Return the arena of the current or last cycle."""
        return <Arena>self.arenas[self.turn] if self.arenas else None

    cdef Arena next(self):
        """Return the arena whose turn it is, in a ring; what was in it is stale."""
        cdef Arena arena = self.current()
        cdef Py_ssize_t turn = self.turn
        if arena.used:
            turn = turn + 1 if turn + 1 < self.count else 0
            arena = self.arenas[turn]
        if arena.used:
            arena.expire(outer_backend())
        self.turn = turn
        return arena

    cdef list all(self):
        """Return the arenas on all backends, those of the current one first."""
        cdef list found = list(self.arenas)
        for arenas, _ in self.kept.values():
            found += arenas
        return found

    cdef int fit(self) except -1:
        """Make the arenas that are not used as large as they should be."""
        cdef Arena arena
        for arena in self.arenas:
            if not arena.used and (self.has_memory or not self.sizing.initial):
                arena.fit()
        return 0

    cdef bint is_read(self):
        """Whether anything of a past cycle is still in use."""
        cdef Arena arena
        for arena in self.all():
            if arena.pinned_count or arena.retired_bytes or (
                    arena.twin is not None and (
                        arena.twin.pinned_count or arena.twin.retired_bytes)):
                return True
        return False

    cdef size_t size(self):
        """Return the bytes of all arenas, or those that the first cycle will take."""
        cdef Arena arena
        cdef size_t total = 0
        for arena in self.all():
            total += arena.size
        if not self.has_memory and not self.gave_back and self.arenas:
            total += self.count * lines(self.current(), self.sizing.initial)
        return total

    cdef int give_back(self) except -1:
        """Give all memory back, and forget what was learned; as new."""
        self.sizing.forget()
        self.has_memory = False
        self.gave_back = True
        empty(self.all())
        self.kept = {}
        return 0


cdef int empty(list arenas) except -1:
    """Give back the memory of arenas that no scope uses."""
    cdef Arena arena
    for arena in arenas:
        if arena.used:
            arena.expire(outer_backend())
        arena.destroy()
    return 0

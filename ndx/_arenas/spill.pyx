"""The policy ``spill``: which backend serves requests that do not fit an arena.

An arena whose size is still to be learned has size 0. Its own backend then serves all
requests, and none is too large.
"""

from libc.stdint cimport uint64_t

from ndx._blocks.block cimport allocate_memory
from ndx._lib.logs cimport log_warning
from ndx._lib.sizing cimport LEARN_FIRST, Sizing
from ndx.backends.base cimport Backend, Memory

from ndx import backends
from ndx._lib.errors import OutOfMemoryError
from ndx._lib.sizes import format_size


cdef class Spill:
    """Serves requests for which an arena has no room, or refuses them.

    Parameters
    ----------
    backend : Backend
        The arena's.
    policy : str
        The value of ``spill``.
    """

    def __cinit__(self, Backend backend not None, str policy not None):
        self.own = self.backend = backend
        self.fails = policy == "fail"
        if policy in ("host", "mmap"):
            if backend.device_number:
                self.beyond = backends.get(f"cuda{policy}:{backend.device_number - 1}")
            else:
                self.backend = backends.get("mmap")

    cdef int check(self, str name, size_t nbytes, size_t taken, size_t size) except -1:
        """Raise if a request of `nbytes` may not spill from an arena."""
        if self.fails and size:
            raise OutOfMemoryError(
                f"workspace {name!r} is full: {format_size(nbytes)} ({nbytes} bytes) "
                f"asked for, {format_size(taken)} of {format_size(size)} taken in this "
                "cycle. To go on, make it larger (size=...), let it spill "
                "(spill='external'), or end the scope earlier.",
                nbytes, taken, size, size, self.own.name)
        return 0

    cdef Backend serve(self, size_t nbytes, bint zero, size_t size, Memory *out):
        """Serve a request that does not fit the arena; return the backend that did."""
        return allocate_memory(
            self.backend if size else self.own, self.beyond, nbytes, zero, out)


# ---- a warning of arenas that are too small for each of their cycles -----------------

cdef enum:
    IN_A_ROW = 16                # cycles with spills, before the warning
    NAMES = 256                  # names of workspaces that are kept

cdef dict runs = {}              # by name: (last cycle that spilled, how many in a row)


cdef void note_first_spill(str name, uint64_t cycle, Sizing sizing, size_t size,
                           size_t most) noexcept:
    """Take note of a cycle that spills, if the first one has set the size for good.

    `most` is the largest need of a cycle so far.
    """
    if size == 0 or sizing.initial or sizing.grows or sizing.learn != LEARN_FIRST:
        return
    found = runs.get(name)
    if found is None:
        if len(runs) < NAMES:
            runs[name] = (cycle, 1)
        return
    last, count = found
    if count == IN_A_ROW:
        return
    count = count + 1 if cycle == last + 1 else 1
    runs[name] = (cycle, count)
    if count == IN_A_ROW:
        log_warning(
            "workspace %r has spilled in %d cycles in a row: its arena has the size of "
            "its first cycle, %d bytes, and a cycle needs up to %d. Give it a size=, "
            "or let it grow: spill='grow'", (name, count, size, most))

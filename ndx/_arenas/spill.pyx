"""The policy ``spill``: which backend serves requests that do not fit an arena.

An arena whose size is still to be learned has size 0. Its own backend then serves all
requests, and none is too large.
"""

from ndx._blocks.block cimport allocate_memory
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

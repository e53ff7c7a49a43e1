"""The contract of a source, which gives a pool its memory and takes it back.

A source knows large ranges only. It is called without the pool's lock, by any
thread, with or without the GIL.
"""

cimport cython
from libc.string cimport memset

__all__ = ["Source"]


@cython.binding(False)
@cython.embedsignature(True)
cdef class Source:
    """Base class of the sources that pools take memory from.

    A source in Cython (``from ndx.backends.source cimport Source``) overrides `reserve`
    and `release`, and sets its fields in ``__cinit__``; one in Python derives from
    `ndx.backends.PythonSource`.

    Notes
    -----
    A *paged* source reserves address space, of which `commit` gives memory to parts
    and `purge` takes it from them. Others give ranges that are memory throughout.
    """

    def __cinit__(self, *args: Any, **options: Any) -> None:
        self.granularity = 4096
        self.alignment = 64
        self.extent = 0
        self.commit_from = 0
        self.host_accessible = True
        self.fork_safe = True
        self.budgeted = True
        self.resource = "machine"

    def _take_refusal(self):
        """Return, and forget, the error by which `reserve` last refused here."""
        return None

    # To override. `reserve` gives a range of nbytes, a multiple of `granularity`, and
    # returns RESERVED. Otherwise it changes nothing, and returns NO_RANGE (the system
    # refused), NO_ROOM (the device or the disk is full), or RAISED with an exception
    # set. `whole`: all of the range is to have memory, also of a paged source.

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        return NO_RANGE

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        """Take back a whole range that `reserve` gave."""

    # For paged ones: both get whole pages inside of one range.

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        return RESERVED

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        return False

    cdef void offer(self, void *ptr, size_t nbytes) noexcept nogil:
        """Let the system take pages if it needs them; their content is lost."""

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        """Set memory to zero, in the order of a stream."""
        memset(ptr, 0, nbytes)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        """Set the idle and all bytes of the memory; return whether these are known."""
        return False

    cdef int show(self, void *ptr, size_t nbytes) noexcept nogil:
        """Let tools that watch memory see whole pages that were never used.

        Called where `hidden` is set, before `commit`. The pages may be mapped anew.
        """
        return RESERVED

    # For those with streams: `record` returns an event, done when all that was given
    # to the stream before it is; NULL if it is done already.

    cdef void *record(self, size_t stream) noexcept nogil:
        return NULL

    cdef bint is_done(self, void *event) noexcept nogil:
        return True

    cdef void wait(self, size_t stream, void *event) noexcept nogil:
        """Make a stream wait for an event; the host waits only for its own ranges."""

    cdef void drop_event(self, void *event) noexcept nogil:
        """Free an event that `record` returned."""

    cdef void synchronize(self, size_t stream) noexcept nogil:
        """Wait, on the host, until a stream has done all of its work."""

    cdef bint is_over(self, size_t stream) noexcept nogil:
        """Whether `record` or `synchronize` found that there is no such stream now."""
        return False

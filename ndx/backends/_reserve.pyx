"""Memory that a backend is to have before it is asked for."""

from libc.string cimport memset

from ndx.backends._relief cimport insist
from ndx.backends.base cimport ALLOCATED, Backend, Counters, Memory

__all__ = ["warm_up"]


def warm_up(Backend backend not None, size_t nbytes, bint touch) -> int:
    """Let a backend serve one request, and take it back; return the bytes newly held.

    What the backend is to keep must be set before. Raises OutOfMemoryError, with
    nothing changed, if the backend can't serve; its fallback is not asked.
    """
    cdef Counters before, after
    cdef Memory memory
    cdef int reason
    if nbytes == 0:
        return 0
    backend.read_counters(&before)
    reason = backend.allocate(nbytes, False, &memory)
    if reason != ALLOCATED:
        insist(backend, nbytes, &memory, reason)
    if touch and backend.host_accessible:
        with nogil:
            memset(memory.ptr, 0, nbytes)
    backend.release(&memory)
    backend.read_counters(&after)
    # The request was no use of memory: it doesn't count as a peak.
    backend.rewind_peak()
    backend.lift_peak(before.peak_allocated, after.peak_reserved)
    return after.reserved - min(before.reserved, after.reserved)

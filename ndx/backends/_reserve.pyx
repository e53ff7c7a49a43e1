"""Memory that a backend is to have before it is asked for."""

from libc.string cimport memset

from ndx.backends._relief cimport insist
from ndx.backends.base cimport ALLOCATED, Backend, Counters, Memory

__all__ = ["warm_up"]


def warm_up(Backend backend not None, size_t nbytes, bint touch) -> int:
    """Let a backend serve one request; return the bytes that it holds more since.

    Raises OutOfMemoryError, with nothing changed, if it can't; its fallback is not
    asked. What the backend is to keep it must know before.
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
    # It was no use of memory.
    backend.rewind_peak()
    backend.lift_peak(before.peak_allocated, after.peak_reserved)
    return after.reserved - min(before.reserved, after.reserved)

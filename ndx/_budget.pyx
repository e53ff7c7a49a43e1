"""What the whole process holds from the system, and the limit on it."""

from ndx._sizes import parse_limit

__all__ = ["process_limit", "process_peak", "process_reserved", "set_process_limit"]

cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)

cdef ndx_lock lock               # taken last; guards the following
cdef size_t held = 0
cdef size_t peak = 0
cdef size_t limit = <size_t>-1   # the greatest: none
cdef size_t segments = 0         # of address space

# 256 segments may have 16 GiB each; then k of them have 4 TiB/k, in all 4 TiB * log(k).
cdef size_t SPACE = <size_t>1 << (42 if sizeof(size_t) == 8 else 28)

cdef enum:
    LEAST_SPACE = 67108864       # 64 MiB


cdef bint budget_take(size_t nbytes) noexcept nogil:
    """Count bytes before they are obtained; False if that would exceed the limit."""
    global held, peak
    cdef bint fits
    ndx_lock_acquire(&lock)
    fits = held <= limit and nbytes <= limit - held
    if fits:
        held += nbytes
        if held > peak:
            peak = held
    ndx_lock_release(&lock)
    return fits


cdef void budget_give(size_t nbytes) noexcept nogil:
    """Count bytes as given back, once they are."""
    global held
    ndx_lock_acquire(&lock)
    held -= nbytes
    ndx_lock_release(&lock)


cdef size_t budget_short(size_t nbytes) noexcept nogil:
    """Return how many bytes must go back before so many more can be held."""
    cdef size_t wanted
    ndx_lock_acquire(&lock)
    wanted = held + min(nbytes, <size_t>-1 - held)
    wanted -= min(wanted, limit)
    ndx_lock_release(&lock)
    return wanted


# Address space is reserved in advance, and has an end, too: the more segments have
# some, the less the next one gets.

cdef size_t space_share(size_t extent) noexcept nogil:
    """Return how much address space to reserve, of an extent that one would like."""
    return min(extent, max(SPACE // (segments + 1), min(extent, <size_t>LEAST_SPACE)))


cdef void space_take() noexcept nogil:
    """Count a segment of address space."""
    global segments
    ndx_lock_acquire(&lock)
    segments += 1
    ndx_lock_release(&lock)


cdef void space_give() noexcept nogil:
    """Count one as given back."""
    global segments
    ndx_lock_acquire(&lock)
    segments -= 1
    ndx_lock_release(&lock)


cdef void budget_lock() noexcept nogil:
    ndx_lock_acquire(&lock)


cdef void budget_unlock() noexcept nogil:
    ndx_lock_release(&lock)


def set_process_limit(value):
    """Set the limit on the memory that all backends of ndx hold together.

    Parameters
    ----------
    value : int or str or None
        Bytes, such as ``"8GiB"``, or a part of what the process may have (the
        machine's memory, or less in a control group), such as ``"50%"``; None for no
        limit. What is held already stays.

    Raises
    ------
    ValueError
        If it is no such size.

    Notes
    -----
    Backends have limits of their own, too (``ndx.use("host", limit=...)``). Files
    (``ndx.use("mmap")``) and GPUs count towards those only: they are not this memory.
    The environment variable ``NDX_LIMIT`` sets it at the start.

    Examples
    --------
    >>> import ndx
    >>> ndx.memory.set_limit("50%")
    >>> ndx.memory.set_limit(None)
    """
    global limit
    cdef size_t nbytes = <size_t>-1
    if value is not None:
        nbytes = parse_limit(value)
    ndx_lock_acquire(&lock)
    limit = nbytes
    ndx_lock_release(&lock)


def process_limit():
    """Return the limit on what all backends of ndx hold together; None for none."""
    return None if limit == <size_t>-1 else limit


def process_reserved():
    """Return the bytes that all backends of ndx hold from the system."""
    return held


def process_peak():
    """Return the most bytes that all backends of ndx have held at once."""
    return peak

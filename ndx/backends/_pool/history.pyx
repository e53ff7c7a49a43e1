"""The recent demand on a pool, by which it gives back idle memory.

The age of a free block is no measure: when a neighbour becomes free, both merge into
one block as young as the neighbour. So the pool notes its highest demand in windows of
time. Memory beyond the highest demand of a period was idle for all of that period.
"""

from libc.stdint cimport uint64_t
from libc.string cimport memset

from ndx.backends._pool.pool cimport Pool
from ndx.backends._pool.store cimport QUICK_SHARE, ndx_lock_acquire, ndx_lock_release
from ndx.backends._pool.trim cimport pool_trim, pool_trim_spare

cdef extern from "ndx/internal/clock.h" nogil:
    uint64_t ndx_milliseconds()

cdef enum:
    LOOK_SHIFT = 4               # looks in a period


cdef void history_begin(PoolHistory *history) noexcept nogil:
    """Start the history of a new pool."""
    memset(history, 0, sizeof(PoolHistory))
    history.known_since = ndx_milliseconds()


cdef bint pool_look(Pool pool, PoolHistory *history, uint64_t now,
                    uint64_t period) noexcept nogil:
    """End the current window if it is due; return whether it was."""
    cdef int window
    cdef bint due
    ndx_lock_acquire(&pool.lock)
    due = now >= history.next_look
    if due:
        window = history.window
        history.next_look = now + (period >> LOOK_SHIFT) + 1
        if history.ends[window]:
            history.known_since = history.ends[window]
        history.crests[window] = pool.extra.crest
        history.ends[window] = now
        history.window = (window + 1) % WINDOWS
        pool.extra.crest = pool.extra.rounded
    ndx_lock_release(&pool.lock)
    return due


cdef size_t pool_release_since(Pool pool, PoolHistory *history,
                               uint64_t before, size_t kept) noexcept nogil:
    """Give back memory that has been idle since `before`; return the bytes.

    The pool keeps at least `kept` bytes.
    """
    cdef size_t released = pool_trim(pool, kept, before)
    cdef size_t needed
    cdef bint spare
    cdef int i
    ndx_lock_acquire(&pool.lock)
    needed = max(pool.extra.crest, kept)
    for i in range(WINDOWS):
        if history.ends[i] > before:
            needed = max(needed, history.crests[i])
    if pool.quick_max:
        # Blocks taken from quick lists are not noted.
        needed += QUICK_SHARE
    spare = before >= history.known_since and pool.counters.reserved > needed
    ndx_lock_release(&pool.lock)
    if spare:
        released += pool_trim_spare(pool, needed)
    return released

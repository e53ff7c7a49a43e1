"""What a pool has needed lately, so that it can give back what it has not.

The age of a free block does not tell: it is merged with what becomes free beside it,
and is as young as that. So the pool's demand is noted, in windows of time: what it held
beyond the highest demand of some time was idle for all of that time.
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
    """Make a history of a pool that begins now."""
    memset(history, 0, sizeof(PoolHistory))
    history.known_since = ndx_milliseconds()


cdef bint pool_look(Pool pool, PoolHistory *history, uint64_t now,
                    uint64_t period) noexcept nogil:
    """End a window if it is time to; return whether it was."""
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
    """Give back what has not been in use since some time; return the bytes.

    No less than `kept` is held then.
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
        # What is taken from quick lists is not noted.
        needed += QUICK_SHARE
    spare = before >= history.known_since and pool.counters.reserved > needed
    ndx_lock_release(&pool.lock)
    if spare:
        released += pool_trim_spare(pool, needed)
    return released

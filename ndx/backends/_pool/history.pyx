"""The recent demand on a pool, by which it gives back idle memory.

The age of a free block is no measure: when a neighbour becomes free, both merge into
one block as young as the neighbour. So the pool notes its highest demand in windows of
time. Memory beyond the highest demand of a period was idle for all of that period.
"""

from libc.stdint cimport uint64_t

from ndx.backends._budget cimport budget_look, watch_claim, watch_go_on
from ndx.backends._pool.pool cimport Pool, pool_after
from ndx.backends._pool.store cimport (
    QUICK_SHARE, WINDOWS, PoolHistory, ndx_lock_acquire, ndx_lock_release,
)
from ndx.backends._pool.trim cimport pool_trim, pool_trim_spare

cdef extern from "ndx/internal/clock.h" nogil:
    uint64_t ndx_milliseconds()

cdef uint64_t LONG = 3600000     # milliseconds


cdef void look_at_pools() noexcept nogil:
    """Give back memory that was idle for long, of all pools, if a look is due.

    A request of any pool is the occasion, so that pools without requests are seen, too.
    """
    cdef uint64_t now = ndx_milliseconds()
    if not watch_claim(now):
        return
    budget_look()
    with gil:
        look_at_all(now)


cdef void look_at_all(uint64_t now) noexcept:
    # Nothing here runs Python: a request may have been made anywhere.
    cdef Pool pool = pool_after(None)
    cdef uint64_t next_look = now + LONG
    cdef bint needed = False
    while pool is not None:
        with nogil:
            look(pool, now)
        if pool.idle() > QUICK_SHARE:
            needed = True
            next_look = min(next_look, pool.history.next_look)
        pool = pool_after(pool)
    watch_go_on(needed, next_look)


cdef void look(Pool pool, uint64_t now) noexcept nogil:
    cdef uint64_t after = pool.idle_after
    if not pool.lost and end_window(pool, now) and after and now > after \
            and pool.idle():
        pool_release_since(pool, now - after, pool.kept)


cdef bint end_window(Pool pool, uint64_t now) noexcept nogil:
    """End the current window of a pool if it is due; return whether it was."""
    cdef PoolHistory *history = &pool.history
    cdef int window
    cdef bint due
    ndx_lock_acquire(&pool.lock)
    due = now >= history.next_look
    if due:
        window = history.window
        history.next_look = now + pool.look_period()
        if history.ends[window]:
            history.known_since = history.ends[window]
        history.crests[window] = pool.extra.crest
        history.ends[window] = now
        history.window = (window + 1) % WINDOWS
        pool.extra.crest = pool.extra.rounded
    ndx_lock_release(&pool.lock)
    return due


cdef size_t pool_release_since(Pool pool, uint64_t before, size_t kept) noexcept nogil:
    """Give back memory that has been idle since `before`; return the bytes.

    The pool keeps at least `kept` bytes.
    """
    cdef PoolHistory *history = &pool.history
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

"""How a pool gives memory back, and how it learns that streams are done.

Blocks are taken out of the pool's lists (BUSY) with the lock, worked on without it,
and put back. All of these functions take the lock.
"""

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t
from libc.stdlib cimport free

from ndx._lib.clock cimport ndx_milliseconds
from ndx._lib.free_threading cimport (
    ndx_get_time, ndx_load_size, ndx_set_time, ndx_store_size, ndx_swap_time,
)
from ndx._lib.unraisable cimport report_ignored
from ndx.backends._budget cimport budget_look, watch_begin, watch_claim, watch_go_on
from ndx.backends._pool.index cimport (
    BUSY, FREE, PoolBlock, PoolEvent, PoolSegment, copy_block,
)
from ndx.backends._pool.pool cimport Pool, pool_after, pool_leave, pool_visit
from ndx.backends._pool.store cimport (
    QUICK_SHARE, WINDOWS, PoolHistory, bytes_in_use, ndx_lock_acquire, ndx_lock_release,
)

from ndx.backends._environment import error_of

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)
    size_t ndx_round_down(size_t nbytes, size_t step)

cdef enum:
    LOOP = 4000                  # milliseconds between the turns of a loop
    TURNS = 4                    # turns that make a loop


cdef inline size_t returnable(Pool pool, PoolBlock *block) noexcept nogil:
    """Return how many bytes of a free block can be given back to the source."""
    cdef size_t page = pool.source.granularity
    cdef size_t low, high
    if not block.segment.paged:
        return block.nbytes if block.nbytes == block.segment.nbytes else 0
    low = ndx_round_up(<size_t>block.ptr, page)
    high = ndx_round_down(<size_t>block.ptr + block.nbytes, page)
    return high - low if high > low else 0


cdef size_t pool_trim(Pool pool, size_t target, uint64_t before) noexcept nogil:
    """Give free memory back to the source, the longest idle first; return the bytes.

    Stops when no more than `target` bytes are held. Leaves alone what became free at
    `before` or later.
    """
    return trim(pool, target, before, False)


cdef size_t pool_trim_spare(Pool pool, size_t target) noexcept nogil:
    """Give free memory back down to the bytes that the pool has needed, `target`.

    A segment that can only go back as a whole goes back if most of it is above
    `target`. Returns the bytes.
    """
    return trim(pool, target, <uint64_t>-1, True)


cdef size_t pool_shrink(Pool pool, size_t nbytes, bint kept) noexcept nogil:
    """Give back up to `nbytes` of idle memory; what is set aside only if `kept`."""
    cdef size_t reserved = ndx_load_size(&pool.counters.reserved)
    cdef size_t target = reserved - min(reserved, nbytes)
    if not kept:
        target = max(target, pool.kept)
    return pool_trim(pool, target, <uint64_t>-1) if target < reserved else 0


cdef void pool_release_bounded(Pool pool, PoolBlock *block, size_t most) noexcept nogil:
    """Take a block back, and keep no more than about `most` bytes idle.

    A loop that makes a large array in each turn would pay for fresh pages each time.
    Such a loop is recognized by memory that went back and was needed again several
    times in a row, and its memory is kept. The system may take that of large blocks
    when it needs pages.
    """
    cdef size_t reserved = ndx_load_size(&pool.counters.reserved)
    cdef size_t page = pool.source.granularity
    cdef size_t low, high
    cdef uint64_t now
    if pool.idle() + block.nbytes <= most:
        pool.release(block)
        return
    now = ndx_milliseconds()
    if now - pool.shrunk > LOOP:
        pool.regrown = 0
    elif pool.regrown < TURNS and reserved > pool.shrunk_to and \
            reserved - pool.shrunk_to >= (pool.shrunk_from - pool.shrunk_to) >> 1:
        pool.regrown += 1
    if pool.regrown == TURNS:
        pool.shrunk = now
        # Offered before another thread can get the block.
        low = ndx_round_up(<size_t>block.ptr, page)
        high = ndx_round_down(<size_t>block.ptr + block.nbytes, page)
        if block.segment.paged and high > low and block.nbytes >= most >> 2:
            pool.source.offer(<void *>low, high - low)
        pool.release(block)
        return
    pool.release(block)
    # The pool is trimmed to half of `most`, so that many releases pay for one walk
    # through the blocks.
    pool_trim(pool, max(bytes_in_use(pool) + (most >> 1), pool.kept), <uint64_t>-1)
    pool.shrunk = now
    pool.shrunk_from = reserved
    pool.shrunk_to = ndx_load_size(&pool.counters.reserved)


cdef size_t trim(Pool pool, size_t target, uint64_t before, bint spare) noexcept nogil:
    cdef PoolBlock *chain = NULL
    cdef PoolBlock *block
    cdef PoolBlock *rest
    cdef PoolSegment *segment
    cdef PoolSegment *next_segment
    cdef PoolSegment *dropped = NULL
    cdef size_t planned = 0, released = 0
    cdef bint moves
    if pool.lost:
        return 0
    if pool.source.streams:
        # What is in flight was in use of late: only a release of all waits for it.
        pool_settle(pool, target == 0 and before == <uint64_t>-1 and not spare)
    ndx_lock_acquire(&pool.lock)
    pool.extra.trims += 1
    pool.empty_shelves()
    if pool.counters.reserved > target and before == <uint64_t>-1:
        released += pool.drop_cell_room(pool.counters.reserved - target)
    segment = pool.segments
    while segment != NULL:
        block = segment.first
        while block != NULL:
            # Blocks of other slots were used since all streams were synchronized.
            if block.state == FREE and block.slot == 0 and block.events == NULL \
                    and block.stamp < before and returnable(pool, block):
                pool.remove(block)
                block.state = BUSY
                block.next_free = chain
                chain = block
            block = block.next
        segment = segment.next
    rest = sort_by_age(chain)
    chain = NULL
    while rest != NULL:
        block = rest
        rest = block.next_free
        segment = block.segment
        if pool.counters.reserved - planned <= target or spare \
                and not segment.paged and segment.nbytes >> 1 > \
                pool.counters.reserved - planned - target:
            block.state = FREE
            pool.insert(block)
        elif segment.paged:
            block = cut_to(pool, block, pool.counters.reserved - planned - target)
            planned += returnable(pool, block)
            block.next_free = chain
            chain = block
        else:
            planned += segment.nbytes
            released += segment.nbytes
            pool.unlink_segment(segment)
            segment.next = dropped
            dropped = segment
    moves = planned > 0
    pool.moving += moves
    ndx_lock_release(&pool.lock)
    pool.drop_segments(dropped)
    dropped = NULL
    while chain != NULL:
        block = chain
        chain = block.next_free
        released += give_back(pool, block)
    ndx_lock_acquire(&pool.lock)
    if moves:
        pool.end_move(True)
    # Segments of which nothing is held any more: their address space goes back.
    segment = NULL if target else pool.segments
    while segment != NULL:
        next_segment = segment.next
        if segment.paged and segment.cold == segment.nbytes:
            pool.remove_cold(segment.first)
            pool.unlink_segment(segment)
            segment.next = dropped
            dropped = segment
        segment = next_segment
    ndx_lock_release(&pool.lock)
    pool.drop_segments(dropped)
    if target == 0 and before == <uint64_t>-1:
        ndx_lock_acquire(&pool.lock)
        pool.drop_idle_slabs(0)
        ndx_lock_release(&pool.lock)
    return released


cdef PoolBlock *cut_to(Pool pool, PoolBlock *block, size_t nbytes) noexcept nogil:
    """Split off what of a BUSY block need not be given back; with the lock."""
    cdef size_t page = pool.source.granularity
    cdef size_t start = <size_t>block.ptr
    cdef size_t cut = start + block.nbytes
    cdef PoolBlock *tail
    if returnable(pool, block) <= nbytes + 16 * page or pool.spare_count < 8:
        return block
    # The end goes: what is kept can grow into it again.
    cut = ndx_round_down(cut, page) - ndx_round_up(nbytes, page)
    tail = pool.split(block, cut - start)
    block.state = FREE
    pool.insert(block)
    return tail


cdef PoolBlock *sort_by_age(PoolBlock *chain) noexcept nogil:
    """Return a chain of blocks sorted by age, the longest free first (a merge sort)."""
    cdef PoolBlock *slow = chain
    cdef PoolBlock *fast
    cdef PoolBlock *other
    cdef PoolBlock head
    cdef PoolBlock *last = &head
    if chain == NULL or chain.next_free == NULL:
        return chain
    fast = chain.next_free
    while fast != NULL and fast.next_free != NULL:
        slow = slow.next_free
        fast = fast.next_free.next_free
    other = slow.next_free
    slow.next_free = NULL
    chain = sort_by_age(chain)
    other = sort_by_age(other)
    while chain != NULL and other != NULL:
        if other.stamp < chain.stamp:
            last.next_free = other
            other = other.next_free
        else:
            last.next_free = chain
            chain = chain.next_free
        last = last.next_free
    last.next_free = chain if chain != NULL else other
    return head.next_free


cdef bint lock_with_spares(Pool pool) noexcept nogil:
    """Take the lock with descriptions at hand; False, without it, if there are none."""
    while True:
        ndx_lock_acquire(&pool.lock)
        if pool.spare_count >= 4:
            return True
        ndx_lock_release(&pool.lock)
        if not pool.stock():
            return False


cdef size_t give_back(Pool pool, PoolBlock *block) noexcept nogil:
    """Make a BUSY block cold, except for partial pages; return the bytes given back."""
    cdef size_t page = pool.source.granularity
    cdef size_t before, nbytes = returnable(pool, block)
    cdef uint64_t stamp = block.stamp
    cdef PoolBlock *tail
    if nbytes == 0 or not lock_with_spares(pool):
        ndx_lock_acquire(&pool.lock)
        pool.free_block(block, stamp)
        ndx_lock_release(&pool.lock)
        return 0
    before = -<size_t>block.ptr & (page - 1)
    if before:
        tail = pool.split(block, before)
        pool.free_block(block, stamp)
        block = tail
    if block.nbytes > nbytes:
        pool.free_block(pool.split(block, nbytes), stamp)
    ndx_lock_release(&pool.lock)
    if pool.source.purge(block.ptr, nbytes):
        ndx_lock_acquire(&pool.lock)
        pool.insert_cold(block)
        pool.return_bytes(nbytes)
        pool.extra.purges += 1
    else:
        ndx_lock_acquire(&pool.lock)
        pool.free_block(block, stamp)
        nbytes = 0
    ndx_lock_release(&pool.lock)
    return nbytes


cdef size_t pool_purge_used(Pool pool, PoolBlock *block, size_t low,
                            size_t high) noexcept nogil:
    """Shrink a block in use to what is needed of it: the bytes from low to high.

    Returns the bytes that were given back; whole pages only.
    """
    cdef size_t page = pool.source.granularity
    cdef size_t start = <size_t>block.ptr
    cdef size_t first = ndx_round_down(start + low, page)
    cdef size_t end = ndx_round_up(start + high, page)
    cdef size_t released = 0
    cdef PoolBlock *head = NULL
    cdef PoolBlock *tail = NULL
    if not block.segment.paged or pool.source.streams or block.nbytes < 4 * page \
            or pool.lost or not lock_with_spares(pool):
        return 0
    if end + page <= start + block.nbytes:
        tail = pool.split(block, end - start)
        tail.state = BUSY
        ndx_store_size(&pool.extra.rounded, pool.extra.rounded - tail.nbytes)
    if start + page <= first:
        head = split_before(pool, block, first - start)
        ndx_store_size(&pool.extra.rounded, pool.extra.rounded - head.nbytes)
    pool.moving += 1
    ndx_lock_release(&pool.lock)
    if tail != NULL:
        released += give_back(pool, tail)
    if head != NULL:
        released += give_back(pool, head)
    ndx_lock_acquire(&pool.lock)
    pool.end_move(True)
    ndx_lock_release(&pool.lock)
    return released


cdef PoolBlock *split_before(Pool pool, PoolBlock *block,
                             size_t nbytes) noexcept nogil:
    """Cut a block, which keeps its description for the rest; return the first part."""
    cdef PoolBlock *head = pool.take_spare()
    copy_block(block, head)
    head.nbytes = nbytes
    head.next = block
    head.events = NULL
    head.uses = 0
    head.state = BUSY
    if block.prev != NULL:
        block.prev.next = head
    else:
        block.segment.first = head
    block.prev = head
    block.ptr += nbytes
    block.nbytes -= nbytes
    return head


cdef void pool_synchronize(Pool pool) noexcept nogil:
    """Wait for all streams, after which any of them may use all free blocks."""
    pool_settle(pool, True)


cdef void pool_settle(Pool pool, bint wait) noexcept nogil:
    """Move free blocks of streams that are done to slot 0; if `wait`, wait for all."""
    cdef PoolSegment *segment
    cdef PoolBlock *block
    cdef PoolBlock *chain = NULL
    cdef uint64_t done = 0
    cdef bint safe, moves
    cdef int slot, nslots
    if not pool.source.streams or pool.lost:
        return
    # Blocks are taken out of the lists first: one that is freed meanwhile may belong to
    # a stream with pending work.
    ndx_lock_acquire(&pool.lock)
    nslots = pool.nslots
    segment = pool.segments
    while segment != NULL:
        block = segment.first
        while block != NULL:
            if block.state == FREE and (block.slot or block.events != NULL):
                pool.remove(block)
                block.state = BUSY
                block.next_free = chain
                chain = block
            block = block.next
        segment = segment.next
    moves = chain != NULL
    pool.moving += moves
    ndx_lock_release(&pool.lock)
    for slot in range(1, nslots):
        if wait:
            pool.synchronize_with(pool.slots[slot].stream)
        # Where the CPU waits (`cpu_waits`), each block has events of its own, and slots
        # are no streams.
        if wait or not pool.source.cpu_waits and is_stream_done(pool, slot):
            done |= <uint64_t>1 << slot
    while chain != NULL:
        block = chain
        chain = block.next_free
        ndx_lock_acquire(&pool.lock)
        pool.pending -= block.events != NULL
        ndx_lock_release(&pool.lock)
        drop_done_events(pool, block)
        ndx_lock_acquire(&pool.lock)
        if pool.source.cpu_waits:
            safe = block.events == NULL
        else:
            safe = done >> block.slot & 1
        if safe:
            block.slot = 0
        pool.pending += block.events != NULL
        pool.free_block(block, block.stamp)
        ndx_lock_release(&pool.lock)
    if moves:
        ndx_lock_acquire(&pool.lock)
        pool.end_move(True)
        ndx_lock_release(&pool.lock)


cdef bint is_stream_done(Pool pool, int slot) noexcept nogil:
    cdef void *event
    cdef bint done
    event = pool.record_on(pool.slots[slot].stream)
    if event == NULL:
        return True
    done = pool.source.is_done(event)
    pool.source.drop_event(event)
    return done


cdef void drop_done_events(Pool pool, PoolBlock *block) noexcept nogil:
    cdef PoolEvent *event
    while block.events != NULL and pool.source.is_done(block.events.event):
        event = block.events
        block.events = event.next
        pool.source.drop_event(event.event)
        free(event)


cdef void pool_close_stream(Pool pool, size_t stream) noexcept nogil:
    """Wait for a stream and forget it; other streams may use its free blocks then."""
    pool_synchronize(pool)
    pool.forget_stream(stream)


# ---- Recent demand, by which idle memory is given back -------------------------------
# The age of a free block is no measure: when a neighbour becomes free, both merge into
# one block as young as the neighbour. So the pool notes its highest demand in windows
# of time. Memory beyond the highest demand of a period was idle for all of that period.

cdef extern from *:
    """
    #include "ndx/internal/idle_thread.h"
    /* A tool that traces C functions runs Python in each. */
    #if defined(CYTHON_TRACE_NOGIL) && CYTHON_TRACE_NOGIL
    #define NDX_TRACES 1
    #else
    #define NDX_TRACES 0
    #endif
    """
    const bint NDX_TRACES
    const uint64_t NDX_NEVER
    void ndx_idle_thread_allow(
        bint allowed, uint64_t (*look)(uint64_t now) noexcept nogil,
        void (*missed)(uint64_t when) noexcept nogil)
    bint ndx_idle_thread_ends() noexcept nogil
    bint ndx_idle_thread_wake(uint64_t when) noexcept nogil

cdef extern from "Python.h" nogil:
    bint Py_IsInitialized()
    int Py_AddPendingCall(int (*function)(void *) noexcept nogil, void *argument)

cdef uint64_t LONG = 3600000     # milliseconds


cdef void look_at_pools() noexcept nogil:
    """Give back memory that was idle for long, of all pools, if a look is due.

    A request of any pool is the occasion, so that pools without requests are seen, too.
    Where the idle thread can, it looks, without requests.
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
    cdef uint64_t due, next_look = now + LONG
    cdef bint needed = False
    while pool is not None:
        with nogil:
            due = look(pool, now)
        if due != NDX_NEVER and not pool.leave_to_thread(due):
            needed = True
            next_look = min(next_look, due)
        pool = pool_after(pool)
    due = look_at_arenas(now)
    if due != NDX_NEVER and not ndx_idle_thread_wake(due):
        needed = True
        next_look = min(next_look, due)
    watch_go_on(needed, next_look)


cdef uint64_t look_alone(uint64_t now) noexcept nogil:
    """Look at the pools that need no Python, in the idle thread; return when again."""
    cdef uint64_t next_look = look_at_arenas(now)
    cdef PyObject *pool = pool_visit(True)
    while pool != NULL:
        if (<Pool>pool).idle_after and (<Pool>pool).source.unattended:
            next_look = min(next_look, look(<Pool>pool, now))
        if ndx_idle_thread_ends():
            pool_leave()
            return now
        pool = pool_visit(False)
    return next_look


def allow_idle_thread(text):
    """Let a thread look at the pools, or requests alone, as ``NDX_IDLE_THREAD`` says.

    Raises
    ------
    ValueError
        If the text is neither "0" nor "1".
    """
    if text not in ("0", "1"):
        raise error_of(
            f"NDX_IDLE_THREAD={text!r} is neither 1, for a thread that gives idle "
            "memory back, nor 0, for requests that do")
    ndx_idle_thread_allow(text == "1" and not NDX_TRACES, look_alone, watch_begin)


cdef uint64_t look(Pool pool, uint64_t now) noexcept nogil:
    """Give back what is due of a pool; return when it is to be looked at again."""
    cdef PoolHistory *history = &pool.history
    cdef uint64_t after = pool.idle_after
    cdef uint64_t before = now - min(now, after)
    cdef uint64_t due = NDX_NEVER
    cdef bint tried
    if pool.lost:
        return NDX_NEVER
    tried = end_window(pool, now) and after and before
    if tried and pool.spare():
        pool_release_since(pool, before, ndx_load_size(&pool.kept))
    ndx_lock_acquire(&pool.lock)
    # If all that is free is as old as what had to go, the rest can't go.
    if pool.spare() > QUICK_SHARE and not (tried and pool.now < before):
        due = history.next_look
    ndx_lock_release(&pool.lock)
    return due


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
    spare = before >= history.known_since and pool.counters.reserved > needed
    ndx_lock_release(&pool.lock)
    if spare:
        released += pool_trim_spare(pool, needed)
    return released


# ---- Arenas of closed workspaces -----------------------------------------------------
# To give one back takes Python, which neither the idle thread runs nor a request: they
# leave it to the main thread, which does it between two of its own steps. (Before 3.13
# it may see that there is something to do only when it takes the GIL.)

cdef uint64_t arenas_due = NDX_NEVER       # atomic
cdef object release_arenas = None

cdef enum:
    LATER = 1000                 # milliseconds, if the main thread has much to do


cdef void watch_arenas(uint64_t after) noexcept nogil:
    """Have the arenas of workspaces looked at, some milliseconds from now."""
    cdef uint64_t when = ndx_milliseconds() + after
    cdef uint64_t due = ndx_get_time(&arenas_due)
    while when < due and not ndx_swap_time(&arenas_due, due, when):
        due = ndx_get_time(&arenas_due)
    if not ndx_idle_thread_wake(when):
        watch_begin(when)


cdef uint64_t look_at_arenas(uint64_t now) noexcept nogil:
    """Have the main thread look at the arenas if they are due; return when they are."""
    cdef uint64_t due = ndx_get_time(&arenas_due)
    if now < due:
        return due
    # Before the look, which so finds an arena whose time is lost here.
    ndx_set_time(&arenas_due, NDX_NEVER)
    if not Py_IsInitialized() or Py_AddPendingCall(arenas_are_due, NULL) == 0:
        return NDX_NEVER
    ndx_set_time(&arenas_due, now + LATER)
    return now + LATER


cdef int arenas_are_due(void *unused) noexcept with gil:
    """Give old arenas back; called in the main thread, with the GIL."""
    try:
        after = release_arenas(ndx_milliseconds())
        if after is not None:
            watch_arenas(after)
    except BaseException as error:
        report_ignored(release_arenas, error)
    return 0


def set_release_of_arenas(function):
    """Set the function that gives the arenas back that were idle for long enough.

    It gets the time in milliseconds, and returns in how many it is to be called again;
    None if there are no arenas.
    """
    global release_arenas
    release_arenas = function

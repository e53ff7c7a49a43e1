"""The caching allocator that every kind of memory shares.

A pool takes large *segments* from its source and cuts blocks from them. What is
released stays with the pool: merged with its free neighbours, found again in
constant time. The descriptions of blocks lie outside of the memory, which need not
be the CPU's.

In a segment of a *paged* source, free blocks are either warm (their pages are held)
or cold (address space, that starts and ends on a page). A segment begins all cold
and grows by warming up what is asked for, so that what the pool holds is what was
used at once, to the page; trimming turns warm blocks cold.

Locks: the pool's guards everything in it but its *shelves*, from which small requests
are served. Each has its own lock, which is taken after the pool's. With a GIL there is
one shelf; without, threads have one each, so that they don't wait for one another.
Sources are called, and memory is touched, without a lock; no Python runs with one.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from ndx._lib.clock cimport ndx_milliseconds
from ndx._lib.free_threading cimport (
    ndx_load_flag, ndx_load_size, ndx_load_time, ndx_store_flag, ndx_store_size,
)
from ndx._lib.guards cimport DEAD_BYTE
from ndx.backends._budget cimport (
    budget_lock, budget_look, budget_short, budget_unlock, gpu_short, space_share,
    watch, watch_begin,
)
from ndx.backends._pool.index cimport (
    BUSY, DEAD, UNFILLED, PoolBlock, PoolEvent, PoolIndex, PoolSegment, index_search,
    ndx_highest_bit,
)
from ndx.backends._pool.store cimport (
    ARENA, CPU, IN_FLIGHT, NAIVE, NO_STREAM, QUICK_SHARE, ROUND, SLOTS, SPLIT, UNPOOLED,
    USUAL_TIME, PoolKind, PoolShelf, PoolStore, bytes_in_use, ndx_lock,
    ndx_lock_acquire, ndx_lock_release, ndx_poison, ndx_require, ndx_unpoison,
    quick_give, quick_take, shelf_lock_too, shelf_of, shelf_unlock_too, shelved_bytes,
)
from ndx.backends.base cimport (
    ALLOCATED, ARENA_FULL, DEVICE_LIMIT, LOST, NO_MEMORY, OWN_LIMIT, PROCESS_LIMIT,
    SOURCE_FULL, TOO_LARGE, TRY_AGAIN,
)
from ndx.backends.source cimport RESERVED, Source

__all__ = ["Pool"]

cdef extern from "ndx/lock.h" nogil:
    int ndx_at_fork(void (*before)() noexcept nogil, void (*after)() noexcept nogil)
    long ndx_process_id()

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)
    size_t ndx_round_down(size_t nbytes, size_t step)

cdef extern from "ndx/internal/idle_thread.h" nogil:
    bint ndx_idle_thread_wake(uint64_t when)

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    SPARE = 8                    # descriptions that one request may need
    LOOK_SHIFT = 4               # looks in the time after which idle memory goes back
    HUGE = 2097152               # 2 MiB: what devices hand out, and a huge page
    SHOWN_SHIFT = 5              # a step of `show`: this part of what was shown before

# All pools, for a fork, which needs every lock to be free in the child, and for looks.
cdef ndx_lock pools_lock
cdef PyObject *pools = NULL
# The pool at which the idle thread is, which has no references, and the next one.
cdef ndx_lock visit_lock         # held during a visit; taken before `pools_lock`
cdef PyObject *visited = NULL
cdef PyObject *ahead = NULL
cdef long process = ndx_process_id()


cdef void before_fork() noexcept nogil:
    cdef PyObject *pool
    ndx_lock_acquire(&visit_lock)
    ndx_lock_acquire(&pools_lock)
    pool = pools
    while pool != NULL:
        ndx_lock_acquire(&(<Pool>pool).shown_lock)
        ndx_lock_acquire(&(<Pool>pool).lock)
        (<Pool>pool).lock_shelves()
        pool = (<Pool>pool).next_pool
    budget_lock()


cdef void after_fork() noexcept nogil:
    global process
    cdef PyObject *pool = pools
    cdef bint child = ndx_process_id() != process
    budget_unlock(child)
    while pool != NULL:
        if child:
            # What other threads were about is never done here.
            (<Pool>pool).moving = 0
        if child and not (<Pool>pool).source.fork_safe:
            (<Pool>pool).lost = True
            (<Pool>pool).quick_max = 0
        (<Pool>pool).unlock_shelves()
        ndx_lock_release(&(<Pool>pool).lock)
        ndx_lock_release(&(<Pool>pool).shown_lock)
        pool = (<Pool>pool).next_pool
    process = ndx_process_id()
    ndx_lock_release(&pools_lock)
    ndx_lock_release(&visit_lock)


if ndx_at_fork(before_fork, after_fork) != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")


# no_gc_clear: a pool needs its source to give its memory back.
@cython.final
@cython.no_gc_clear
cdef class Pool(PoolStore):
    """A caching allocator over a source; backends make one each."""

    def __cinit__(self, Source source not None, *, kind="split", limit=None,
                  initial=None, uint64_t idle_after=0, int cutoff=24):
        global pools
        cdef int small
        cdef size_t total = 0
        self.source = source
        self.kind = kind_of(kind)
        self.history.known_since = ndx_milliseconds()
        self.idle_after = idle_after
        self.limit = <size_t>-1 if limit is None else <size_t>limit
        self.unit = max(64, source.alignment)
        self.unit_shift = ndx_highest_bit(self.unit)
        self.lift = self.unit - 1
        self.small_max = 65536 if source.paged else 1048576
        self.small_segment = HUGE
        self.large_segment = 10 * HUGE
        self.rest = 4096 if source.paged else 65536
        self.rest_shift = 6
        self.cutoff = cutoff
        self.initial = 0 if initial is None else <size_t>initial
        self.most = PY_SSIZE_T_MAX
        if source.most:
            self.most = source.most
        elif source.info(NULL, &total):
            self.most = total
        if self.kind != SPLIT:
            self.small_max = 0
        if self.kind == ARENA:
            # One segment for all sizes.
            self.rest = self.unit
            if initial is None:
                if limit is None:
                    raise ValueError(
                        "pool='arena' takes all its memory at once: say how much by "
                        "initial= or limit=")
                self.initial = self.limit & ~(source.granularity - 1)
        if self.kind in (SPLIT, ARENA) and not source.streams:
            self.quick_max = 65536
        for small in range(2):
            self.cold[small] = <PoolIndex *>calloc(1, sizeof(PoolIndex))
            if self.cold[small] == NULL:
                raise MemoryError("no memory for the index of a pool")
        if self.slot_of(<size_t>NO_STREAM) != 0:
            raise MemoryError("no memory for the index of a pool")
        ndx_lock_acquire(&pools_lock)
        self.next_pool = pools
        if pools != NULL:
            (<Pool>pools).prev_pool = <PyObject *>self
        pools = <PyObject *>self
        ndx_lock_release(&pools_lock)

    def __dealloc__(self):
        global ahead, pools
        cdef PoolSegment *segment
        cdef PyObject *here = <PyObject *>self
        cdef bint is_visited
        ndx_lock_acquire(&pools_lock)
        if pools == here or self.prev_pool != NULL:
            if self.next_pool != NULL:
                (<Pool>self.next_pool).prev_pool = self.prev_pool
            if self.prev_pool != NULL:
                (<Pool>self.prev_pool).next_pool = self.next_pool
            else:
                pools = self.next_pool
        if ahead == here:
            ahead = self.next_pool
        is_visited = visited == here
        ndx_lock_release(&pools_lock)
        if is_visited:
            # No visit begins any more; the one that has begun needs no GIL to end.
            ndx_lock_acquire(&visit_lock)
            ndx_lock_release(&visit_lock)
        # The holder of a block holds its backend, which holds this: no block is in use.
        segment = self.segments
        self.segments = NULL
        if not self.lost:
            self.drop_segments(segment)
            self.drop_cell_room(<size_t>-1)

    cdef int allocate(self, size_t nbytes, size_t stream, PoolBlock **out,
                      bint *clean) except -1 nogil:
        """Give a block of at least `nbytes`; or return why not, changing nothing."""
        cdef PoolBlock *block = NULL if ndx_load_flag(&watch.over) \
            else quick_take(self, nbytes)
        if block == NULL:
            if self.quick_max and shelf_of(self) == NULL:
                # Without one, for want of memory, requests are as right, but slower.
                self.add_shelf()
            return self.allocate_slow(nbytes, stream, out, clean)
        out[0] = block
        clean[0] = False
        return ALLOCATED

    cdef int allocate_slow(self, size_t nbytes, size_t stream, PoolBlock **out,
                           bint *clean) except -1 nogil:
        cdef size_t need = self.round(nbytes)
        cdef Grant grant
        cdef PoolBlock *block
        cdef int slot = 0, status
        cdef uint64_t moved
        cdef bint missed = False, looked = False
        cdef void *event
        if self.lost:
            return LOST
        status = self.check_size(need)
        if status != ALLOCATED:
            ndx_lock_acquire(&self.lock)
            status = self.refuse(need, status)
            ndx_lock_release(&self.lock)
            return status
        while True:
            ndx_lock_acquire(&self.lock)
            if self.spare_count < SPARE:
                ndx_lock_release(&self.lock)
                if not self.stock():
                    return NO_MEMORY
                continue
            slot = self.slot_of(stream)
            if slot < 0:
                ndx_lock_release(&self.lock)
                with gil:
                    raise ValueError(
                        f"memory of more than {SLOTS - 1} streams at once: tell the "
                        "backend which ones are over, by its close_stream")
            if self.find(need, slot, &grant):
                self.extra.misses += missed or grant.fresh != NULL
                if not grant.cut:
                    self.count(grant.block, nbytes)
                ndx_lock_release(&self.lock)
                break
            missed = True
            moved = self.moved
            status = grant.refusal
            if status == ALLOCATED:
                ndx_lock_release(&self.lock)
                status = self.grow(need, need <= self.small_max, slot)
                if status == ALLOCATED:
                    continue
                ndx_lock_acquire(&self.lock)
            elif status == PROCESS_LIMIT and not looked:
                ndx_lock_release(&self.lock)
                looked = True
                if budget_look():
                    continue
                ndx_lock_acquire(&self.lock)
            if status > ALLOCATED and moved != self.moved:
                # What another thread has moved meanwhile may do.
                ndx_lock_release(&self.lock)
                continue
            status = self.refuse(need, status)
            ndx_lock_release(&self.lock)
            return status
        block = grant.block
        if grant.cut:
            if self.source.host_accessible:
                # The fresh part may have been in use before, and the source may write
                # to it.
                ndx_unpoison(grant.fresh, grant.fresh_nbytes)
            status = RESERVED
            if self.source.hidden:
                status = self.show(block.segment, grant.fresh + grant.fresh_nbytes)
            if status == RESERVED and grant.fresh_nbytes >= self.source.commit_from:
                status = self.source.commit(grant.fresh, grant.fresh_nbytes)
            if status != RESERVED:
                self.undo_commit(&grant)
                return status
            if self.guard:
                memset(grant.fresh, DEAD_BYTE, grant.fresh_nbytes)
            ndx_lock_acquire(&self.lock)
            self.extra.commits += 1
            self.end_move(True)
            self.note_peak()
            self.forget(grant.spare)
            self.cut(block, need, slot)
            self.count(block, nbytes)
            ndx_lock_release(&self.lock)
        if grant.fresh != NULL:
            self.arrive(grant.fresh, grant.fresh_nbytes)
        if grant.stolen:
            # The event is recorded now, later than necessary: it covers all work that
            # may still use the block.
            event = self.record_on(grant.owner)
            if event != NULL:
                self.source.wait(stream, event)
                self.source.drop_event(event)
        if block.events != NULL:
            self.finish_events(block, stream)
        if self.source.host_accessible:
            ndx_unpoison(block.ptr, nbytes)
        out[0] = block
        clean[0] = grant.clean and not self.guard
        return ALLOCATED

    cdef void finish_events(self, PoolBlock *block, size_t stream) noexcept nogil:
        """Make a stream wait for the work that still uses a block it got."""
        cdef PoolEvent *event
        while block.events != NULL:
            event = block.events
            block.events = event.next
            self.source.wait(stream, event.event)
            self.source.drop_event(event.event)
            free(event)

    cdef int show(self, PoolSegment *segment, char *end) noexcept nogil:
        """Show a segment to tools that watch memory, at least up to an address.

        Parts are shown in order, each once. Memory beyond them was in no block in use
        before this returns: the source may map it anew. The steps grow with the
        segment, so that there are few.
        """
        cdef int status = RESERVED
        cdef size_t low, high
        ndx_lock_acquire(&self.shown_lock)
        if end > segment.shown:
            low = <size_t>segment.shown
            high = ndx_round_up(<size_t>end, max(<size_t>HUGE, self.source.granularity))
            high = max(high, low + ndx_round_up(
                (low - <size_t>segment.ptr) >> SHOWN_SHIFT, self.source.granularity))
            high = min(high, <size_t>segment.ptr + segment.nbytes)
            status = self.source.show(<void *>low, high - low)
            if status == RESERVED:
                ndx_lock_acquire(&self.lock)
                segment.shown = <char *>high
                ndx_lock_release(&self.lock)
        ndx_lock_release(&self.shown_lock)
        return status

    cdef void undo_commit(self, Grant *grant) noexcept nogil:
        """Put back a block whose fresh part got no memory."""
        cdef PoolBlock *block = grant.block
        cdef PoolBlock *tail
        self.arrive(NULL, grant.fresh_nbytes)
        ndx_lock_acquire(&self.lock)
        self.forget(grant.spare)
        if grant.fresh > block.ptr:
            tail = self.split(block, grant.fresh - block.ptr)
            self.insert_cold(tail)
            self.free_block(block, block.stamp)
        else:
            self.insert_cold(block)
        self.return_bytes(grant.fresh_nbytes)
        self.end_move(True)
        ndx_lock_release(&self.lock)

    cdef void release(self, PoolBlock *block) noexcept nogil:
        """Take a block back from its holder; streams may still use the block."""
        cdef PoolSegment *segment
        cdef uint64_t stamp
        cdef int slot
        if self.guard and not self.lost:
            self.bury(block)
        if self.lost or quick_give(self, block):
            return
        if self.source.cpu_waits:
            if self.kind == UNPOOLED:
                self.finish_events(block, CPU)
        elif self.kind == UNPOOLED and self.source.streams:
            block.uses |= <uint64_t>1 << block.slot
            for slot in range(SLOTS):
                if block.uses >> slot & 1:
                    self.order_release(block, self.slots[slot].stream)
        elif block.uses:
            self.record_events(block)
        stamp = ndx_milliseconds()
        # A device still reads blocks that are in flight.
        if self.source.host_accessible and block.events == NULL:
            ndx_poison(block.ptr, block.nbytes)
        ndx_lock_acquire(&self.lock)
        self.uncount(block)
        if self.kind == UNPOOLED:
            segment = block.segment
            block.state = BUSY
            self.unlink_segment(segment)
            self.moving += 1
            ndx_lock_release(&self.lock)
            segment.next = NULL
            self.drop_segments(segment)
            ndx_lock_acquire(&self.lock)
            self.end_move(True)
            ndx_lock_release(&self.lock)
            return
        if block.events != NULL:
            self.pending += 1
            if self.source.cpu_waits:
                # If there is no slot left, the block goes to slot 0, where it is found
                # in its turn, and waited for.
                block.slot = <unsigned char>max(0, self.slot_of(IN_FLIGHT))
        self.free_block(block, stamp)
        ndx_lock_release(&self.lock)
        self.note_idle(stamp)

    cdef void bury(self, PoolBlock *block) noexcept nogil:
        """Fill a block of a guarded pool whose holder gives it back."""
        ndx_lock_acquire(&self.lock)
        block.filled = UNFILLED
        ndx_lock_release(&self.lock)
        # What devices still read or write is not filled, and not checked.
        if block.events == NULL and block.uses == 0:
            ndx_unpoison(block.ptr, block.nbytes)
            memset(block.ptr, DEAD_BYTE, block.nbytes)
            block.filled = DEAD

    cdef void set_limit(self, size_t nbytes) noexcept nogil:
        """Set the limit; nothing is granted from now on while more is held."""
        ndx_lock_acquire(&self.lock)
        ndx_store_size(&self.limit, nbytes)
        ndx_lock_release(&self.lock)

    cdef size_t idle(self) noexcept nogil:
        """Return the bytes that are held but not in use."""
        cdef size_t reserved = ndx_load_size(&self.counters.reserved)
        return reserved - min(reserved, bytes_in_use(self))

    cdef size_t spare(self) noexcept nogil:
        """Return the bytes that are idle, without those that are kept however long."""
        cdef size_t reserved = ndx_load_size(&self.counters.reserved)
        cdef size_t kept = ndx_load_size(&self.kept) if self.idle_after else 0
        return reserved - min(reserved, max(bytes_in_use(self), kept))

    cdef bint leave_to_thread(self, uint64_t when) noexcept nogil:
        """Let the idle thread look at the pool by `when`; False if none can."""
        return self.idle_after and self.source.unattended \
            and ndx_idle_thread_wake(when)

    cdef void note_idle(self, uint64_t now) noexcept nogil:
        """Have the pool looked at if much is idle; the caller has just read the clock.

        The idle thread looks or, where it can't, requests, which then read the clock.
        """
        cdef uint64_t next_look = now + self.look_period()
        if self.spare() > QUICK_SHARE and not self.leave_to_thread(next_look) and (
                not ndx_load_flag(&watch.on) or ndx_load_time(&watch.next) > next_look):
            watch_begin(next_look)
        # The next request finds out whether requests are slow from now on.
        ndx_store_flag(&watch.slow, True)

    cdef uint64_t look_period(self) noexcept nogil:
        """Return the milliseconds between two looks at the pool."""
        return ((self.idle_after or USUAL_TIME) >> LOOK_SHIFT) + 1

    cdef void order_release(self, PoolBlock *block, size_t stream) noexcept nogil:
        """Make the release of a block's memory wait for the work of a stream."""
        cdef size_t owner = <size_t>block.segment.cookie
        cdef void *event
        if not self.source.ordered:
            self.synchronize_with(stream)
        elif stream != owner:
            event = self.record_on(stream)
            if event != NULL:
                self.source.wait(owner, event)
                self.source.drop_event(event)

    cdef bint would_hit(self, size_t nbytes) noexcept nogil:
        """Whether idle memory could serve a request; this takes the lock."""
        cdef size_t need = self.round(nbytes)
        cdef PoolShelf *shelf = shelf_of(self)
        cdef bint found = False
        ndx_lock_acquire(&self.lock)
        if nbytes <= self.quick_max and shelf != NULL:
            shelf_lock_too(shelf)
            found = shelf.quick[need >> self.unit_shift] != NULL
            shelf_unlock_too(shelf)
        found = found or self.find_warm(need, need <= self.small_max, 0) != NULL
        ndx_lock_release(&self.lock)
        return found

    cdef void record_events(self, PoolBlock *block) noexcept nogil:
        """Record an event on each other stream that used a block."""
        cdef PoolEvent *event
        cdef int slot
        for slot in range(SLOTS):
            if not block.uses >> slot & 1:
                continue
            event = <PoolEvent *>malloc(sizeof(PoolEvent))
            if event == NULL:
                self.synchronize_with(self.slots[slot].stream)
                continue
            event.event = self.record_on(self.slots[slot].stream)
            event.next = block.events
            if event.event == NULL:
                free(event)
            else:
                block.events = event
        block.uses = 0

    cdef void finish_uses(self, PoolBlock *block) noexcept nogil:
        """Wait, on the host, for all streams that use a block in use."""
        cdef uint64_t uses
        cdef int slot
        ndx_lock_acquire(&self.lock)
        uses = block.uses | <uint64_t>1 << block.slot
        ndx_lock_release(&self.lock)
        for slot in range(1, SLOTS):
            if uses >> slot & 1:
                self.synchronize_with(self.slots[slot].stream)

    cdef void record_use(self, PoolBlock *block, size_t stream) noexcept nogil:
        """Note that a stream other than the block's own uses the block, too."""
        cdef int slot
        if not self.source.streams:
            return
        ndx_lock_acquire(&self.lock)
        slot = self.slot_of(stream)
        if slot > 0 and slot != block.slot:
            block.uses |= <uint64_t>1 << slot
        ndx_lock_release(&self.lock)
        if slot < 0:
            self.source.synchronize(stream)

    cdef size_t round(self, size_t nbytes) noexcept nogil:
        """Return the size of a block for a request; 0 if it is too large."""
        cdef size_t step = self.unit
        if nbytes > <size_t>PY_SSIZE_T_MAX >> 1:
            return 0
        nbytes += 2 * self.guard
        if self.kind in (ROUND, NAIVE, UNPOOLED):
            step = max(self.source.granularity, self.unit)
        if self.kind == NAIVE and nbytes > HUGE:
            step = max(step, HUGE)
        elif self.kind == ROUND and nbytes > step:
            step = max(step, <size_t>1 << min(
                ndx_highest_bit(nbytes - 1) + 1, self.cutoff))
        return max(ndx_round_up(nbytes, step), step)

    # --- called with the lock --------------------------------------------------------

    cdef bint find(self, size_t need, int slot, Grant *grant) noexcept nogil:
        """Take a free block that fits, split to size unless `grant.cut` is set."""
        cdef int small = need <= self.small_max
        cdef PoolBlock *block
        grant.fresh = NULL
        grant.fresh_nbytes = 0
        grant.stolen = grant.cut = grant.clean = False
        grant.refusal = self.over()
        if grant.refusal != ALLOCATED:
            return False
        block = self.find_warm(need, small, slot)
        if block == NULL and shelved_bytes(self) >= max(1, need // 4):
            self.empty_shelves()
            block = self.find_warm(need, small, slot)
        if block == NULL:
            if self.kind == SPLIT and self.source.paged:
                return self.find_cold(need, small, slot, grant)
            return False
        self.remove(block)
        block.state = BUSY
        if block.slot != slot and block.slot != 0:
            grant.stolen = True
            grant.owner = self.slots[block.slot].stream
            self.extra.steals += 1
        if block.events != NULL:
            self.pending -= 1
        # The remainder stays with its stream, whose work may not be done.
        self.cut(block, need, block.slot)
        block.slot = <unsigned char>slot
        grant.block = block
        ndx_require(self.counters.reserved <= self.limit, "a grant beyond a limit")
        return True

    cdef bint find_cold(self, size_t need, int small, int slot,
                        Grant *grant) noexcept nogil:
        """Warm up the least that serves a request, next to a free block if possible."""
        cdef PoolBlock *cold = self.best_joint(need, small, slot)
        cdef PoolBlock *block = NULL
        cdef PoolBlock *fresh
        cdef size_t nbytes
        if cold != NULL:
            block = cold.prev
            nbytes = ndx_round_up(need - block.nbytes, self.source.granularity)
        else:
            cold = index_search(self.cold[small], need)
            if cold == NULL:
                return False
            nbytes = ndx_round_up(need, self.source.granularity)
        grant.refusal = self.reserve_bytes(nbytes)
        if grant.refusal != ALLOCATED:
            return False
        fresh = self.warm_up(cold, nbytes, slot)
        grant.fresh = fresh.ptr
        grant.fresh_nbytes = nbytes
        grant.cut = nbytes >= self.source.commit_from or self.guard != 0 \
            or self.source.hidden and fresh.ptr + nbytes > fresh.segment.shown
        if block != NULL:
            self.remove(block)
            fresh = self.join(fresh)
        else:
            grant.clean = self.source.zeroed
        fresh.state = BUSY
        grant.block = fresh
        if grant.cut:
            grant.spare = self.take_spare()
            self.moving += 1
        else:
            self.note_peak()
            self.cut(fresh, need, slot)
        ndx_require(self.counters.reserved <= self.limit, "a grant beyond a limit")
        return True

    cdef int refuse(self, size_t need, int reason) noexcept nogil:
        """Count a refusal; return its reason, or TRY_AGAIN if the next may be none."""
        self.extra.refusals += 1
        return TRY_AGAIN if self.moving and self.idle_may_help(need, reason) else reason

    # --- called without the lock -----------------------------------------------------

    cdef size_t missing(self, size_t nbytes, int reason) noexcept nogil:
        """Return how many bytes must go back before a limit allows `nbytes` more."""
        cdef size_t wanted
        if reason == OWN_LIMIT:
            wanted = ndx_load_size(&self.counters.reserved) + nbytes
            return wanted - min(wanted, ndx_load_size(&self.limit))
        if reason == PROCESS_LIMIT:
            return budget_short(nbytes)
        return gpu_short(self.source.gpu, nbytes)

    cdef bint idle_may_help(self, size_t need, int reason) noexcept nogil:
        """Whether to give back the pool's idle memory could lead to another answer.

        A walk through all blocks is worth it only then: a program with a fallback may
        work beyond a limit, where each request is refused.
        """
        cdef size_t idle = self.idle()
        if reason in (OWN_LIMIT, PROCESS_LIMIT, DEVICE_LIMIT):
            return self.missing(need, reason) <= idle
        if reason == SOURCE_FULL:
            return idle > 0
        if reason == ARENA_FULL:
            return self.source.streams
        # It may have address space without memory, which the system wants as well.
        return reason == NO_MEMORY

    cdef int check_size(self, size_t need) noexcept nogil:
        """Return TOO_LARGE for a rounded size (0: beyond all) that can never be."""
        if need == 0 or need > ndx_load_size(&self.limit) or need > self.most \
                or self.kind == ARENA and need > self.initial:
            return TOO_LARGE
        return ALLOCATED

    cdef int grow(self, size_t need, int small, int slot) except -1 nogil:
        """Get a segment from the source in which a block of `need` bytes fits."""
        if self.kind == SPLIT and self.source.paged:
            return self.grow_paged(need, small, slot)
        return self.grow_plain(need, small, slot)

    cdef int grow_paged(self, size_t need, int small, int slot) except -1 nogil:
        """Reserve address space for a new segment, without memory so far."""
        cdef void *ptr = NULL
        cdef void *cookie = NULL
        # Whole pages, since the last cold block of a segment ends with one, too.
        cdef size_t step = max(<size_t>HUGE, self.source.granularity)
        cdef size_t least = ndx_round_up(need, step)
        cdef size_t extent = space_share(self.source.extent)
        cdef size_t nbytes = max(
            ndx_round_down(extent >> (4 if small else 0), step), least)
        cdef int status
        if least > extent >> 2 and least < self.most:
            # Blocks larger than an extent get room to grow, too.
            nbytes = max(nbytes, 4 * least)
        while True:
            status = self.source.reserve(nbytes, False, &ptr, &cookie)
            if status == RESERVED:
                break
            if status < 0 or nbytes == least:
                return status
            nbytes = max(least, ndx_round_up(nbytes >> 2, step))
        status = self.add_segment(ptr, nbytes, cookie, small, slot, True)
        if status != ALLOCATED:
            self.source.release(ptr, nbytes, cookie)
        return status

    cdef int grow_plain(self, size_t need, int small, int slot) except -1 nogil:
        """Get memory for a new segment: for other blocks too, or just enough."""
        cdef size_t exact = ndx_round_up(need, self.source.granularity)
        cdef size_t nbytes = exact
        cdef int status
        if self.kind == ARENA:
            if self.segment_count or self.initial < exact:
                return ARENA_FULL
            return self.reserve_plain(self.initial, small, slot)
        if self.kind == SPLIT:
            if small:
                nbytes = max(exact, self.small_segment)
            elif need < self.large_segment // 2:
                nbytes = max(exact, self.large_segment)
            else:
                nbytes = ndx_round_up(exact, HUGE)
        while True:
            status = self.reserve_plain(nbytes, small, slot)
            if status <= ALLOCATED or nbytes == exact:
                return status
            nbytes = exact

    cdef int begin_growth(self, size_t nbytes) noexcept nogil:
        cdef int status
        ndx_lock_acquire(&self.lock)
        status = self.reserve_bytes(nbytes)
        self.moving += status == ALLOCATED
        ndx_lock_release(&self.lock)
        return status

    cdef int reserve_plain(self, size_t nbytes, int small, int slot) except -1 nogil:
        cdef void *ptr = NULL
        cdef void *cookie = NULL
        cdef int status
        # Counted before it is obtained, so that threads can't pass the limit together.
        status = self.begin_growth(nbytes)
        if status == PROCESS_LIMIT and budget_look():
            status = self.begin_growth(nbytes)
        if status != ALLOCATED:
            return status
        status = self.source.reserve(nbytes, True, &ptr, &cookie)
        self.arrive(ptr if status == RESERVED else NULL, nbytes)
        if status == RESERVED:
            if self.guard:
                memset(ptr, DEAD_BYTE, nbytes)
            status = self.add_segment(ptr, nbytes, cookie, small, slot, False)
            if status != ALLOCATED:
                self.source.release(ptr, nbytes, cookie)
        ndx_lock_acquire(&self.lock)
        if status != RESERVED:
            self.return_bytes(nbytes)
        # If nothing was moved, to look again would find what it found before.
        self.end_move(status == RESERVED)
        ndx_lock_release(&self.lock)
        return status


KINDS = {"split": SPLIT, "round": ROUND, "naive": NAIVE, "unpooled": UNPOOLED,
         "arena": ARENA}


cdef PoolKind kind_of(object name) except *:
    if not isinstance(name, str) or name not in KINDS:
        raise ValueError(
            f"pool={name!r} is not a type of pool; valid are {', '.join(KINDS)}")
    return KINDS[name]


cdef Pool pool_after(Pool pool):
    """Return the next of all pools; the first one for None, None after the last."""
    cdef PyObject *found
    ndx_lock_acquire(&pools_lock)
    found = pools if pool is None else pool.next_pool
    if found != NULL:
        Py_INCREF(<object>found)
    ndx_lock_release(&pools_lock)
    if found == NULL:
        return None
    pool = <Pool>found
    Py_DECREF(pool)
    return pool


cdef PyObject *pool_visit(bint first) noexcept nogil:
    """Return the first or the next of all pools, for a visit; NULL after the last.

    For the one thread that has no Python, and so counts no references: a pool is not
    destroyed during a visit. `pool_leave` ends one that is not followed by another.
    """
    global visited, ahead
    if not first:
        ndx_lock_release(&visit_lock)
    ndx_lock_acquire(&visit_lock)
    ndx_lock_acquire(&pools_lock)
    visited = pools if first else ahead
    ahead = NULL if visited == NULL else (<Pool>visited).next_pool
    ndx_lock_release(&pools_lock)
    if visited == NULL:
        ndx_lock_release(&visit_lock)
    return visited


cdef void pool_leave() noexcept nogil:
    global visited, ahead
    ndx_lock_acquire(&pools_lock)
    visited = ahead = NULL
    ndx_lock_release(&pools_lock)
    ndx_lock_release(&visit_lock)

"""The blocks and segments of a pool: how they are cut, merged, found and counted.

All functions need the pool's lock, except those whose docstring says that they take it.
"""

cimport cython
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from ndx._lib.free_threading cimport (
    NDX_SHARDS, ndx_load_flag, ndx_shard, ndx_store_size,
)
from ndx.backends._budget cimport (
    budget_arrive, budget_give, budget_take, gpu_give, gpu_short, gpu_take, space_give,
    space_take, watch,
)
from ndx.backends._pool.index cimport (
    BUSY, COLD, DEAD, FREE, SUBS, UNFILLED, USED, PoolBlock, PoolIndex, PoolSegment,
    copy_block, index_insert, index_remove, index_search, index_search_exact,
    ndx_highest_bit,
)
from ndx.backends.base cimport (
    ALLOCATED, DEVICE_LIMIT, NO_MEMORY, OWN_LIMIT, PROCESS_LIMIT, counters_lift,
)

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)

cdef extern from "ndx/internal/pages.h" nogil:
    void *ndx_reserve(size_t nbytes, bint whole)
    void ndx_unreserve(void *ptr, size_t nbytes)

cdef enum:
    IDLE_SLABS = 4               # wholly unused slabs that are kept
    COLD_SCAN = 64


cdef inline Slab *slab_of(PoolBlock *block) noexcept nogil:
    # The blocks are the last field, and nothing lies after them.
    cdef size_t head = sizeof(Slab) - SLAB * sizeof(PoolBlock)
    return <Slab *>(<char *>(block - block.place) - head)


cdef inline void link_slab(Slab *slab, SlabLink *before) noexcept nogil:
    slab.link.prev = before
    slab.link.next = before.next
    before.next.prev = &slab.link
    before.next = &slab.link


cdef inline void unlink_slab(Slab *slab) noexcept nogil:
    slab.link.prev.next = slab.link.next
    slab.link.next.prev = slab.link.prev


cdef inline void link_after(PoolBlock *block, PoolBlock *tail) noexcept nogil:
    tail.prev = block
    tail.next = block.next
    if block.next != NULL:
        block.next.prev = tail
    block.next = tail


cdef inline void unlink(PoolBlock *block) noexcept nogil:
    if block.prev != NULL:
        block.prev.next = block.next
    else:
        block.segment.first = block.next
    if block.next != NULL:
        block.next.prev = block.prev


@cython.no_gc_clear
cdef class PoolStore:
    """The blocks and segments of a pool; `Pool` chooses the block for a request."""

    def __cinit__(self, *args, **options):
        self.slabs.next = self.slabs.prev = &self.slabs
        self.full_slabs.next = self.full_slabs.prev = &self.full_slabs
        self.shelves[0] = &self.first

    def __dealloc__(self):
        cdef SlabLink *link
        cdef int small, slot, shard
        for head in range(2):
            link = self.full_slabs.next if head else self.slabs.next
            while link != (&self.full_slabs if head else &self.slabs):
                link = link.next
                ndx_unreserve(link.prev, sizeof(Slab))
        for small in range(2):
            free(self.cold[small])
            for slot in range(SLOTS):
                free(self.slots[slot].warm[small])
        for shard in range(1, NDX_SHARDS):
            free(self.shelves[shard])

    cdef void count(self, PoolBlock *block, size_t nbytes) noexcept nogil:
        """Count a block that is handed out."""
        self.gather()
        block.state = USED
        block.requested = nbytes
        ndx_store_size(<size_t *>&self.counters.allocations,
                       self.counters.allocations + 1)
        self.counters.lent += nbytes
        self.counters.live += 1
        self.counters.allocated += nbytes
        counters_lift(&self.counters, self.counters.allocated, self.counters.live, 0)
        ndx_store_size(&self.extra.rounded, self.extra.rounded + block.nbytes)
        if self.extra.rounded > self.extra.crest:
            self.extra.crest = self.extra.rounded

    cdef void uncount(self, PoolBlock *block) noexcept nogil:
        """Count a block that is taken back, other than by a shelf."""
        self.gather()
        self.counters.live -= 1
        self.counters.allocated -= block.requested
        ndx_store_size(&self.extra.rounded, self.extra.rounded - block.nbytes)

    cdef void add_shelf(self) noexcept nogil:
        """Make a shelf for the threads of this thread's shard, if there is memory."""
        cdef PoolShelf *shelf = <PoolShelf *>calloc(1, sizeof(PoolShelf))
        cdef int shard = ndx_shard()
        ndx_lock_acquire(&self.lock)
        if self.shelves[shard] == NULL:
            ndx_set_shelf(&self.shelves[shard], shelf)
            shelf = NULL
        ndx_lock_release(&self.lock)
        free(shelf)

    cdef void lock_shelves(self) noexcept nogil:
        cdef int shard
        for shard in range(NDX_SHARDS):
            if self.shelves[shard] != NULL:
                shelf_lock_too(self.shelves[shard])

    cdef void unlock_shelves(self) noexcept nogil:
        cdef int shard
        for shard in range(NDX_SHARDS):
            if self.shelves[shard] != NULL:
                shelf_unlock_too(self.shelves[shard])

    cdef void gather(self) noexcept nogil:
        """Count what the shelves' threads have done since the last time.

        The peak is exact for one shelf. With several it is an upper bound: their peaks
        need not have been at one time.
        """
        cdef PoolShelf *shelf
        cdef size_t peak = self.counters.allocated
        cdef size_t peak_live = self.counters.live
        cdef uint64_t allocations = self.counters.allocations, peak_time = 0
        cdef int shard
        if NDX_SHARDS > 1:
            self.lock_shelves()
        for shard in range(NDX_SHARDS):
            shelf = self.shelves[shard]
            if shelf != NULL:
                peak += shelf.peak
                peak_live += shelf.peak_live
                if shelf.peak:
                    peak_time = max(peak_time, shelf.peak_time)
                allocations += shelf.allocations
                self.counters.lent += shelf.lent
                self.counters.live += shelf.live
                self.counters.allocated += shelf.allocated
                ndx_store_size(<size_t *>&shelf.allocations, 0)
                shelf.lent = shelf.live = shelf.allocated = 0
                shelf.peak = shelf.peak_live = 0
        if NDX_SHARDS > 1:
            self.unlock_shelves()
        ndx_store_size(<size_t *>&self.counters.allocations, allocations)
        if peak > self.counters.peak_allocated:
            counters_lift(&self.counters, peak, 0, 0)
            self.counters.peak_time = peak_time
        counters_lift(&self.counters, 0, peak_live, 0)

    cdef PoolBlock *find_warm(self, size_t need, int small, int slot) noexcept nogil:
        """Return a free block that fits: of the stream, of no stream, or of another."""
        cdef PoolBlock *block = NULL
        cdef int other
        if self.kind in (ROUND, NAIVE, UNPOOLED):
            small = 0
        for other in range(-2, self.nslots):
            if other >= 0 and (other == slot or other == 0):
                continue
            if other == -1 and slot == 0:
                continue
            if other > 0 and self.source.cpu_waits:
                # Blocks of that slot may still be in use: the pool grows rather than
                # wait.
                break
            block = self.slot_search(
                slot if other == -2 else 0 if other == -1 else other, small, need)
            if block != NULL:
                break
        return block

    cdef PoolBlock *slot_search(self, int slot, int small,
                                size_t need) noexcept nogil:
        cdef PoolIndex *index = self.slots[slot].warm[small]
        if self.kind == SPLIT or self.kind == ARENA:
            return index_search(index, need)
        return index_search_exact(index, need)

    cdef PoolBlock *best_joint(self, size_t need, int small, int slot) noexcept nogil:
        """Return the cold block that completes the largest warm block before it."""
        cdef PoolIndex *index = self.cold[small]
        cdef PoolBlock *best = NULL
        cdef PoolBlock *cold
        cdef PoolBlock *warm
        cdef int top, sub, looked = 0
        cdef uint64_t tops = index.tops
        while tops:
            # The largest first: there are few.
            top = ndx_highest_bit(tops)
            tops &= ~(<uint64_t>1 << top)
            for sub in range(SUBS - 1, -1, -1):
                cold = index.heads[top][sub]
                while cold != NULL:
                    warm = cold.prev
                    if warm != NULL and warm.state == FREE and warm.events == NULL \
                            and warm.slot == slot \
                            and warm.nbytes + cold.nbytes >= need \
                            and (best == NULL or warm.nbytes > best.prev.nbytes):
                        best = cold
                    looked += 1
                    if looked == COLD_SCAN:
                        return best
                    cold = cold.next_free
        return best

    cdef PoolBlock *warm_up(self, PoolBlock *cold, size_t nbytes,
                            int slot) noexcept nogil:
        """Make the first bytes of a cold block a warm block, which is in no list."""
        index_remove(self.cold[cold.segment.small], cold)
        cold.segment.cold -= nbytes
        if cold.nbytes > nbytes:
            index_insert(self.cold[cold.segment.small], self.split(cold, nbytes))
        cold.state = BUSY
        cold.slot = <unsigned char>slot
        # The pages are filled before anyone else can see the block.
        cold.filled = DEAD if self.guard else UNFILLED
        cold.stamp = self.now
        return cold

    cdef PoolBlock *join(self, PoolBlock *block) noexcept nogil:
        """Merge a block into the one before it; both are in no list."""
        cdef PoolBlock *prev = block.prev
        prev.nbytes += block.nbytes
        if prev.filled != block.filled:
            prev.filled = UNFILLED
        unlink(block)
        self.forget(block)
        self.extra.merges += 1
        return prev

    cdef PoolBlock *split(self, PoolBlock *block, size_t nbytes) noexcept nogil:
        """Cut a block after nbytes; return the rest, in the same state, in no list."""
        cdef PoolBlock *tail = self.take_spare()
        copy_block(block, tail)
        tail.ptr += nbytes
        tail.nbytes -= nbytes
        tail.events = NULL
        tail.uses = 0
        block.nbytes = nbytes
        link_after(block, tail)
        return tail

    cdef void cut(self, PoolBlock *block, size_t need, int slot) noexcept nogil:
        """Cut what a block has beyond `need`, and free it, if that is worth it."""
        cdef PoolBlock *tail
        cdef size_t rest = block.nbytes - need
        if self.kind not in (SPLIT, ARENA) or rest == 0 or rest < (
                self.unit if block.segment.small else
                max(self.rest, block.nbytes >> self.rest_shift)):
            return
        if block.events != NULL:
            return                   # the rest would have to wait for the same events
        tail = self.split(block, need)
        tail.slot = <unsigned char>slot
        self.extra.splits += 1
        self.free_block(tail, block.stamp)

    cdef void free_block(self, PoolBlock *block, uint64_t stamp) noexcept nogil:
        """Make a block free, and merge it with its free neighbours."""
        cdef PoolBlock *other
        block.requested = 0
        block.state = FREE
        block.stamp = stamp
        self.now = max(self.now, stamp)
        if block.events == NULL and (self.kind == SPLIT or self.kind == ARENA):
            other = block.next
            if other != NULL and other.state == FREE and other.slot == block.slot \
                    and other.events == NULL:
                self.remove(other)
                self.join(other)
            other = block.prev
            if other != NULL and other.state == FREE and other.slot == block.slot \
                    and other.events == NULL:
                self.remove(other)
                block = self.join(block)
                block.stamp = stamp
        self.insert(block)

    cdef void insert(self, PoolBlock *block) noexcept nogil:
        index_insert(self.slots[block.slot].warm[block.segment.small], block)

    cdef void remove(self, PoolBlock *block) noexcept nogil:
        index_remove(self.slots[block.slot].warm[block.segment.small], block)

    cdef void insert_cold(self, PoolBlock *block) noexcept nogil:
        """Make a block without pages cold, and merge it with its cold neighbours."""
        cdef PoolIndex *index = self.cold[block.segment.small]
        block.segment.cold += block.nbytes
        block.requested = 0
        block.state = COLD
        block.slot = 0
        block.filled = UNFILLED
        if block.next != NULL and block.next.state == COLD:
            index_remove(index, block.next)
            self.join(block.next)
        if block.prev != NULL and block.prev.state == COLD:
            index_remove(index, block.prev)
            block = self.join(block)
        index_insert(index, block)

    cdef void remove_cold(self, PoolBlock *block) noexcept nogil:
        index_remove(self.cold[block.segment.small], block)

    cdef void empty_shelves(self) noexcept nogil:
        """Merge the blocks on the shelves with their free neighbours."""
        cdef PoolShelf *shelf
        cdef PoolBlock *block
        cdef PoolBlock *chain
        cdef size_t i
        cdef int shard
        cdef uint64_t stamp = ndx_milliseconds()
        for shard in range(NDX_SHARDS):
            shelf = self.shelves[shard]
            chain = NULL
            i = 0
            if shelf == NULL:
                continue
            shelf_lock_too(shelf)
            ndx_store_size(&self.extra.rounded, self.extra.rounded - shelf.quick_nbytes)
            while shelf.quick_nbytes:
                block = shelf.quick[i]
                while block != NULL:
                    shelf.quick[i] = block.next_free
                    ndx_store_size(&shelf.quick_nbytes,
                                   shelf.quick_nbytes - block.nbytes)
                    block.next_free = chain
                    chain = block
                    block = shelf.quick[i]
                i += 1
            shelf_unlock_too(shelf)
            while chain != NULL:
                block = chain
                chain = block.next_free
                self.free_block(block, stamp)

    cdef int over(self) noexcept nogil:
        """Return the limit that the held bytes exceed, or ALLOCATED if there is none.

        A limit may have been lowered, and others fill the process. No request is
        granted then, not even from idle memory, before enough has gone back.
        """
        if self.counters.reserved > self.limit:
            return OWN_LIMIT
        if ndx_load_flag(&watch.over) and self.source.budgeted:
            return PROCESS_LIMIT
        if self.source.gpu and gpu_short(self.source.gpu, 0):
            return DEVICE_LIMIT
        return ALLOCATED

    cdef int reserve_bytes(self, size_t nbytes) noexcept nogil:
        """Count bytes that are about to be held; or return the limit that forbids them.

        `arrive` tells, without the lock, that they were obtained. The process has a
        limit on the machine's memory; each GPU has one, too.
        """
        if self.counters.reserved > self.limit \
                or nbytes > self.limit - self.counters.reserved:
            return OWN_LIMIT
        if self.source.budgeted and not budget_take(nbytes):
            return PROCESS_LIMIT
        if self.source.gpu and not gpu_take(self.source.gpu, nbytes):
            return DEVICE_LIMIT
        ndx_store_size(&self.counters.reserved, self.counters.reserved + nbytes)
        return ALLOCATED

    cdef void arrive(self, void *pages, size_t nbytes) noexcept nogil:
        """Report that counted bytes were obtained, or not (NULL); without the lock."""
        if self.source.budgeted:
            # Only lazy pages are not yet in memory.
            budget_arrive(pages if self.source.paged else NULL, nbytes)

    cdef void note_peak(self) noexcept nogil:
        """Raise the recorded peak to what is held, after it was obtained."""
        counters_lift(&self.counters, 0, 0, self.counters.reserved)

    cdef void return_bytes(self, size_t nbytes) noexcept nogil:
        ndx_store_size(&self.counters.reserved, self.counters.reserved - nbytes)
        if self.source.budgeted:
            budget_give(nbytes)
        if self.source.gpu:
            gpu_give(self.source.gpu, nbytes)

    cdef void end_move(self, bint moved) noexcept nogil:
        # In a forked child none is counted: what its thread was about may end there.
        self.moving -= self.moving > 0
        self.moved += moved

    cdef void forget(self, PoolBlock *block) noexcept nogil:
        cdef Slab *slab = slab_of(block)
        block.next_free = slab.spare
        slab.spare = block
        slab.unused += 1
        self.spare_count += 1
        if slab.unused == 1:
            unlink_slab(slab)
            link_slab(slab, &self.slabs)
        elif slab.unused == SLAB:
            unlink_slab(slab)
            link_slab(slab, self.slabs.prev)
            self.idle_slabs += 1
            self.drop_idle_slabs(IDLE_SLABS)

    cdef void drop_idle_slabs(self, size_t most) noexcept nogil:
        """Give wholly unused slabs back to the system, except for `most`."""
        cdef Slab *slab
        while self.idle_slabs > most:
            slab = <Slab *>self.slabs.prev
            unlink_slab(slab)
            self.idle_slabs -= 1
            self.slab_count -= 1
            self.spare_count -= SLAB
            ndx_unreserve(slab, sizeof(Slab))

    cdef PoolBlock *take_spare(self) noexcept nogil:
        """Return an unused description, of a slab that is in use if there is one."""
        cdef Slab *slab = <Slab *>self.slabs.next
        cdef PoolBlock *block
        if self.spare_count == 0:
            return NULL
        block = slab.spare
        slab.spare = block.next_free
        self.idle_slabs -= slab.unused == SLAB
        slab.unused -= 1
        self.spare_count -= 1
        if slab.unused == 0:
            unlink_slab(slab)
            link_slab(slab, &self.full_slabs)
        return block

    cdef bint add_cell_room(self) noexcept nogil:
        """Count one more page as held, for small arrays; this takes the lock."""
        cdef size_t nbytes = self.source.granularity
        cdef PoolShelf *shelf = shelf_of(self)
        cdef bint fits
        ndx_lock_acquire(&self.lock)
        fits = self.over() == ALLOCATED and self.reserve_bytes(nbytes) == ALLOCATED
        if fits:
            shelf_lock_too(shelf)
            ndx_store_size(&shelf.cell_room, shelf.cell_room + nbytes // CELL_UNIT)
            ndx_store_size(&self.extra.rounded, self.extra.rounded + nbytes)
            shelf_unlock_too(shelf)
            self.extra.misses += 1
            self.note_peak()
        ndx_lock_release(&self.lock)
        if fits:
            self.arrive(NULL, nbytes)
        return fits

    cdef size_t drop_cell_room(self, size_t most) noexcept nogil:
        """Give up room that small arrays don't need, about `most`; return its bytes."""
        cdef size_t page = self.source.granularity
        cdef size_t nbytes, dropped = 0
        cdef PoolShelf *shelf
        cdef int shard
        for shard in range(NDX_SHARDS):
            shelf = self.shelves[shard]
            # A pool that was not made to its end has no room, and pages of no bytes.
            if shelf == NULL or shelf.cell_room == 0 or dropped >= most:
                continue
            shelf_lock_too(shelf)
            nbytes = shelf.cell_room * CELL_UNIT // page * page
            nbytes = ndx_round_up(min(nbytes, most - dropped), page)
            ndx_store_size(&shelf.cell_room, shelf.cell_room - nbytes // CELL_UNIT)
            ndx_store_size(&self.extra.rounded, self.extra.rounded - nbytes)
            shelf_unlock_too(shelf)
            self.return_bytes(nbytes)
            dropped += nbytes
        return dropped

    cdef bint stock(self) noexcept nogil:
        """Allocate descriptions for the requests to come; this takes the lock."""
        cdef Slab *slab = <Slab *>ndx_reserve(sizeof(Slab), True)
        cdef int i
        if slab == NULL:
            return False
        slab.spare = NULL
        slab.unused = SLAB
        for i in range(SLAB - 1, -1, -1):
            slab.blocks[i].place = <unsigned short>i
            slab.blocks[i].next_free = slab.spare
            slab.spare = &slab.blocks[i]
        ndx_lock_acquire(&self.lock)
        link_slab(slab, self.slabs.prev)
        self.slab_count += 1
        self.idle_slabs += 1
        self.spare_count += SLAB
        ndx_lock_release(&self.lock)
        return True

    cdef int slot_of(self, size_t stream) noexcept nogil:
        """Return the slot of a stream, a new one if need be; -1 if all are taken."""
        cdef int slot, small
        if self.nslots and (not self.source.streams
                            or self.source.cpu_waits and stream == CPU):
            return 0
        for slot in range(1, self.nslots):
            if self.slots[slot].stream == stream:
                return slot
        # A slot whose stream has ended, or a new one.
        for slot in range(self.nslots):
            if slot and self.slots[slot].stream == <size_t>NO_STREAM:
                break
        else:
            slot = self.nslots
            if slot == SLOTS:
                return -1
            for small in range(2):
                if self.slots[slot].warm[small] == NULL:
                    self.slots[slot].warm[small] = \
                        <PoolIndex *>calloc(1, sizeof(PoolIndex))
                if self.slots[slot].warm[small] == NULL:
                    return -1
            self.nslots += 1
        self.slots[slot].stream = stream
        return slot

    cdef void *record_on(self, size_t stream) noexcept nogil:
        """Record an event on a stream; NULL if its work is done; without the lock."""
        cdef void *event
        if stream == <size_t>NO_STREAM:
            return NULL
        event = self.source.record(stream)
        if event == NULL and self.source.is_over(stream):
            self.forget_stream(stream)
        return event

    cdef void synchronize_with(self, size_t stream) noexcept nogil:
        """Wait for a stream; without the lock."""
        if stream != <size_t>NO_STREAM:
            self.source.synchronize(stream)
            if self.source.is_over(stream):
                self.forget_stream(stream)

    cdef void forget_stream(self, size_t stream) noexcept nogil:
        """Free the slot of a stream that has ended; this takes the lock."""
        cdef int slot
        ndx_lock_acquire(&self.lock)
        for slot in range(1, self.nslots):
            if self.slots[slot].stream == stream:
                self.slots[slot].stream = <size_t>NO_STREAM
        ndx_lock_release(&self.lock)

    cdef int add_segment(self, void *ptr, size_t nbytes, void *cookie, int small,
                         int slot, bint paged) except -1 nogil:
        """Add a range of the source as a segment; this takes the lock."""
        cdef PoolSegment *segment = <PoolSegment *>calloc(1, sizeof(PoolSegment))
        cdef PoolBlock *block = NULL
        if segment == NULL:
            return NO_MEMORY
        segment.ptr = segment.shown = <char *>ptr
        segment.nbytes = nbytes
        segment.cookie = cookie
        segment.small = small
        segment.paged = paged
        while True:
            ndx_lock_acquire(&self.lock)
            block = self.take_spare()
            if block != NULL:
                break
            ndx_lock_release(&self.lock)
            if not self.stock():
                free(segment)
                return NO_MEMORY
        block.ptr = segment.ptr
        block.nbytes = nbytes
        block.segment = segment
        block.prev = NULL
        block.next = NULL
        block.events = NULL
        block.uses = 0
        block.slot = <unsigned char>slot
        # The caller has filled it. Address space is filled as it gets memory.
        block.filled = DEAD if self.guard and not paged else UNFILLED
        segment.first = block
        segment.next = self.segments
        if self.segments != NULL:
            self.segments.prev = segment
        self.segments = segment
        self.segment_count += 1
        self.counters.system_allocations += 1
        if paged:
            space_take()
            self.insert_cold(block)
        else:
            self.note_peak()
            self.free_block(block, ndx_milliseconds())
        ndx_lock_release(&self.lock)
        return ALLOCATED

    cdef void unlink_segment(self, PoolSegment *segment) noexcept nogil:
        if segment.prev != NULL:
            segment.prev.next = segment.next
        else:
            self.segments = segment.next
        if segment.next != NULL:
            segment.next.prev = segment.prev
        segment.next = NULL
        segment.prev = NULL

    cdef void drop_segments(self, PoolSegment *segments) noexcept nogil:
        """Give a list of unlinked segments back; this takes the lock.

        None of their blocks is in an index.
        """
        cdef PoolSegment *segment
        cdef PoolBlock *block
        while segments != NULL:
            segment = segments
            segments = segment.next
            if self.source.host_accessible:
                ndx_unpoison_space(segment.ptr, segment.nbytes)
            # Counted only after the release, so that the limit holds at every moment.
            self.source.release(segment.ptr, segment.nbytes, segment.cookie)
            if segment.paged:
                space_give()
            ndx_lock_acquire(&self.lock)
            self.return_bytes(segment.nbytes - segment.cold)
            self.counters.system_frees += 1
            self.segment_count -= 1
            while segment.first != NULL:
                block = segment.first
                segment.first = block.next
                self.forget(block)
            ndx_lock_release(&self.lock)
            free(segment)

from libc.stdint cimport uint64_t

from ndx._lib.clock cimport ndx_milliseconds
from ndx._lib.free_threading cimport (
    NDX_SHARDS, ndx_load_size, ndx_shard, ndx_store_size,
)
from ndx.backends._pool.index cimport (
    SHELVED, USED, PoolBlock, PoolIndex, PoolSegment,
)
from ndx.backends.base cimport CELL, CELL_UNIT, Counters
from ndx.backends.source cimport Source

cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)

cdef extern from "ndx/internal/checked.h" nogil:
    void ndx_require(bint condition, const char *what)

cdef extern from "ndx/internal/poison.h" nogil:
    void ndx_poison(void *ptr, size_t nbytes)
    void ndx_unpoison(void *ptr, size_t nbytes)
    void ndx_unpoison_space(void *ptr, size_t nbytes)

cdef enum:
    USUAL_TIME = 30000           # milliseconds, where no `idle_release` is known
    WINDOWS = 20                 # 16 of them span the time that idle memory is kept

# The peak need of a pool in each window, from one look to the next.
cdef struct PoolHistory:
    size_t crests[WINDOWS]       # ring buffer of peaks
    uint64_t ends[WINDOWS]       # milliseconds; 0: not written yet
    uint64_t known_since         # start of the oldest window
    uint64_t next_look
    int window                   # index to write next

cdef enum PoolKind:
    SPLIT
    ROUND
    NAIVE
    UNPOOLED
    ARENA

cdef enum:
    SLOTS = 64
    QUICK_LISTS = 1025           # one per unit, up to 64 KiB for the smallest unit
    QUICK_SHARE = 1048576        # largest total of a shelf's quick lists, in bytes
    SLAB = 680                   # descriptions made at a time: 64 KiB of whole pages
    CELL_ROOM = 8192             # most small arrays for which room is kept
    NO_STREAM = -1
    CPU = 0                      # stream number of the CPU, if the source's `cpu_waits`
    IN_FLIGHT = 1                # likewise: of blocks that devices still read or write

# The free blocks of one stream. Blocks in slot 0 are safe for any stream.
cdef struct PoolSlot:
    size_t stream
    PoolIndex *warm[2]           # large, small

# Many descriptions, in pages of their own, so that these go back to the system whatever
# lies around them.
cdef struct SlabLink:
    SlabLink *next
    SlabLink *prev

cdef struct Slab:
    SlabLink link                # the first field: a link is its slab
    PoolBlock *spare
    size_t unused
    PoolBlock blocks[SLAB]

# What the threads of one shard take and give back without the pool's lock, and what
# they did since `gather` counted it for the pool.
cdef struct PoolShelf:
    ndx_lock lock
    uint64_t allocations
    uint64_t lent
    size_t live                  # these two as differences, which may be below 0
    size_t allocated
    size_t peak                  # the highest of `allocated`, at least 0
    size_t peak_live
    size_t quick_nbytes
    # Room for arrays whose elements lie in their objects (in units of CELL_UNIT), that
    # is held already: as memory that `over` and `trim` know. And how many there are, by
    # bytes. What all requests use comes first, in as few lines of the cache as can be.
    size_t cell_room
    size_t cells[CELL + 1]
    PoolBlock *quick[QUICK_LISTS]
    uint64_t peak_time           # when `peak` was set, as in `Counters`

cdef extern from "ndx/internal/free_threading.h" nogil:
    PoolShelf *ndx_get_shelf "ndx_get"(PoolShelf *const *shelf)
    void ndx_set_shelf "ndx_set"(PoolShelf **shelf, PoolShelf *value)

# Counters in addition to those of every backend.
cdef struct PoolCounters:
    size_t rounded               # bytes of USED blocks and of small arrays' room
    size_t crest                 # peak of `rounded` since `pool_look`
    uint64_t misses              # requests not served from held memory
    uint64_t splits
    uint64_t merges
    uint64_t steals              # of another stream's block
    uint64_t commits
    uint64_t purges
    uint64_t trims
    uint64_t refusals

cdef class PoolStore:
    cdef readonly Source source
    cdef ndx_lock lock           # guards all fields below, and all blocks
    cdef PoolShelf first         # the shelf of the first shard
    cdef PoolShelf *shelves[NDX_SHARDS]   # NULL until a thread of that shard comes
    cdef size_t quick_max        # largest block that goes into a quick list; 0: none
    cdef size_t unit
    cdef size_t guard            # bytes on either side of each range, at least; 0: none
    cdef size_t lift             # added to a request before it is cut to units
    cdef int unit_shift
    cdef PoolKind kind
    cdef size_t limit            # on reserved bytes; the maximum value: no limit
    cdef size_t kept             # bytes that only `trim`, or a limit, takes from it
    cdef uint64_t idle_after     # milliseconds after which idle memory goes; 0: never
    cdef PoolHistory history     # of the bytes needed, to find idle ones
    cdef uint64_t shrunk         # when idle memory went at once; see `release_bounded`
    cdef size_t shrunk_from      # bytes held before
    cdef size_t shrunk_to        # bytes held since
    cdef int regrown             # how often in a row they were needed again
    cdef size_t small_max        # larger requests go into large segments
    cdef size_t rest             # smallest remainder split off in large segments:
    cdef int rest_shift          # and at least block.nbytes >> rest_shift
    cdef uint64_t now            # time of the last release, in milliseconds
    cdef Counters counters
    cdef PoolCounters extra
    cdef PoolIndex *cold[2]
    cdef PoolSlot slots[SLOTS]
    cdef int nslots
    cdef size_t pending          # free blocks with events
    # Threads that move memory between the pool and its source, or blocks within the
    # pool: for as long, memory is held that is neither in use nor found. And how often
    # such a move was done.
    cdef size_t moving
    cdef uint64_t moved
    cdef PoolSegment *segments
    cdef size_t segment_count
    cdef SlabLink slabs          # with unused descriptors, wholly unused ones last
    cdef SlabLink full_slabs
    cdef size_t slab_count
    cdef size_t idle_slabs       # wholly unused
    cdef size_t spare_count      # unused descriptors

    cdef void count(self, PoolBlock *block, size_t nbytes) noexcept nogil
    cdef bint stock(self) noexcept nogil
    cdef void drop_idle_slabs(self, size_t most) noexcept nogil
    cdef bint add_cell_room(self) noexcept nogil
    cdef size_t drop_cell_room(self, size_t most) noexcept nogil
    cdef PoolBlock *take_spare(self) noexcept nogil
    cdef void forget(self, PoolBlock *block) noexcept nogil
    cdef int slot_of(self, size_t stream) noexcept nogil
    cdef void *record_on(self, size_t stream) noexcept nogil
    cdef void synchronize_with(self, size_t stream) noexcept nogil
    cdef void forget_stream(self, size_t stream) noexcept nogil
    cdef int over(self) noexcept nogil
    cdef int reserve_bytes(self, size_t nbytes) noexcept nogil
    cdef void arrive(self, void *pages, size_t nbytes) noexcept nogil
    cdef void note_peak(self) noexcept nogil
    cdef void return_bytes(self, size_t nbytes) noexcept nogil
    cdef void end_move(self, bint moved) noexcept nogil
    cdef PoolBlock *find_warm(self, size_t need, int small, int slot) noexcept nogil
    cdef PoolBlock *slot_search(self, int slot, int small, size_t need) noexcept nogil
    cdef PoolBlock *best_joint(self, size_t need, int small, int slot) noexcept nogil
    cdef PoolBlock *warm_up(self, PoolBlock *cold, size_t nbytes,
                            int slot) noexcept nogil
    cdef void cut(self, PoolBlock *block, size_t need, int slot) noexcept nogil
    cdef PoolBlock *split(self, PoolBlock *block, size_t nbytes) noexcept nogil
    cdef PoolBlock *join(self, PoolBlock *block) noexcept nogil
    cdef void insert(self, PoolBlock *block) noexcept nogil
    cdef void remove(self, PoolBlock *block) noexcept nogil
    cdef void free_block(self, PoolBlock *block, uint64_t stamp) noexcept nogil
    cdef void insert_cold(self, PoolBlock *block) noexcept nogil
    cdef void remove_cold(self, PoolBlock *block) noexcept nogil
    cdef void add_shelf(self) noexcept nogil
    cdef void lock_shelves(self) noexcept nogil
    cdef void unlock_shelves(self) noexcept nogil
    cdef void gather(self) noexcept nogil
    cdef void empty_shelves(self) noexcept nogil
    cdef void uncount(self, PoolBlock *block) noexcept nogil
    cdef int add_segment(self, void *ptr, size_t nbytes, void *cookie, int small,
                         int slot, bint paged) except -1 nogil
    cdef void unlink_segment(self, PoolSegment *segment) noexcept nogil
    cdef void drop_segments(self, PoolSegment *segments) noexcept nogil


cdef inline PoolShelf *shelf_of(PoolStore self) noexcept nogil:
    """Return the shelf of this thread; NULL: it has none yet."""
    return &self.first if NDX_SHARDS == 1 else \
        ndx_get_shelf(&self.shelves[ndx_shard()])


# With one shard the pool's lock is the shelf's, too: then requests take one, not two.
cdef inline void shelf_lock(PoolStore self, PoolShelf *shelf) noexcept nogil:
    """Lock a shelf; the caller has not the pool's lock."""
    ndx_lock_acquire(&self.lock if NDX_SHARDS == 1 else &shelf.lock)


cdef inline void shelf_unlock(PoolStore self, PoolShelf *shelf) noexcept nogil:
    ndx_lock_release(&self.lock if NDX_SHARDS == 1 else &shelf.lock)


cdef inline void shelf_lock_too(PoolShelf *shelf) noexcept nogil:
    """Lock a shelf; the caller has the pool's lock."""
    if NDX_SHARDS > 1:
        ndx_lock_acquire(&shelf.lock)


cdef inline void shelf_unlock_too(PoolShelf *shelf) noexcept nogil:
    if NDX_SHARDS > 1:
        ndx_lock_release(&shelf.lock)


cdef inline uint64_t requests_of(PoolStore self) noexcept nogil:
    """Return a number that grows with the requests of this thread."""
    cdef PoolShelf *shelf = shelf_of(self)
    return ndx_load_size(<size_t *>&self.counters.allocations) + (
        0 if shelf == NULL else ndx_load_size(<size_t *>&shelf.allocations))


cdef inline size_t shelved_bytes(PoolStore self) noexcept nogil:
    """Return the bytes on all shelves; without the lock, about so many."""
    cdef size_t nbytes = 0
    cdef PoolShelf *shelf
    cdef int shard
    for shard in range(NDX_SHARDS):
        shelf = ndx_get_shelf(&self.shelves[shard])
        if shelf != NULL:
            nbytes += ndx_load_size(&shelf.quick_nbytes) + \
                ndx_load_size(&shelf.cell_room) * CELL_UNIT
    return nbytes


cdef inline size_t bytes_in_use(PoolStore self) noexcept nogil:
    """Return the bytes of blocks in use; without the lock, about so many."""
    cdef size_t rounded = ndx_load_size(&self.extra.rounded)
    return rounded - min(rounded, shelved_bytes(self))


cdef inline bint shelf_open(PoolStore self) noexcept nogil:
    """Whether requests are granted: no more is held than the limit allows."""
    return ndx_load_size(&self.counters.reserved) <= ndx_load_size(&self.limit)


cdef inline void shelf_add(PoolShelf *shelf, size_t nbytes) noexcept nogil:
    """Count a range of a shelf that is handed out."""
    ndx_store_size(<size_t *>&shelf.allocations, shelf.allocations + 1)
    shelf.lent += nbytes
    shelf.live += 1
    shelf.allocated += nbytes
    if <Py_ssize_t>shelf.allocated > <Py_ssize_t>shelf.peak:
        shelf.peak = shelf.allocated
        shelf.peak_time = ndx_milliseconds()
    if <Py_ssize_t>shelf.live > <Py_ssize_t>shelf.peak_live:
        shelf.peak_live = shelf.live


cdef inline void shelf_remove(PoolShelf *shelf, size_t nbytes) noexcept nogil:
    """Count a range that is put on a shelf."""
    shelf.live -= 1
    shelf.allocated -= nbytes


cdef inline PoolBlock *quick_take(PoolStore self, size_t nbytes) noexcept nogil:
    """Return the last released block of a small size, or NULL."""
    cdef PoolShelf *shelf = shelf_of(self)
    cdef PoolBlock **head
    cdef PoolBlock *block
    if nbytes > self.quick_max or shelf == NULL:
        return NULL
    head = &shelf.quick[(nbytes + self.lift) >> self.unit_shift]
    shelf_lock(self, shelf)
    block = head[0]
    if block != NULL and not shelf_open(self):
        block = NULL
    if block != NULL:
        head[0] = block.next_free
        ndx_store_size(&shelf.quick_nbytes, shelf.quick_nbytes - block.nbytes)
        block.requested = nbytes
        shelf_add(shelf, nbytes)
    shelf_unlock(self, shelf)
    if block != NULL:
        ndx_unpoison(block.ptr, nbytes)
    return block


cdef inline bint quick_give(PoolStore self, PoolBlock *block) noexcept nogil:
    """Keep a small block unmerged, for the next request of its size; False if full."""
    cdef size_t nbytes = block.nbytes
    cdef PoolShelf *shelf = shelf_of(self)
    cdef PoolBlock **head
    if nbytes > self.quick_max or shelf == NULL:
        return False
    ndx_poison(block.ptr, nbytes)
    shelf_lock(self, shelf)
    if shelf.quick_nbytes + nbytes > QUICK_SHARE:
        shelf_unlock(self, shelf)
        return False
    head = &shelf.quick[nbytes >> self.unit_shift]
    shelf_remove(shelf, block.requested)
    ndx_store_size(&shelf.quick_nbytes, shelf.quick_nbytes + nbytes)
    block.requested = SHELVED
    block.next_free = head[0]
    head[0] = block
    shelf_unlock(self, shelf)
    return True


cdef inline bint cell_take(PoolStore self, size_t nbytes) noexcept nogil:
    """Count an array whose elements lie in its object; False if a limit forbids it."""
    cdef PoolShelf *shelf = shelf_of(self)
    cdef size_t units = (nbytes + CELL_UNIT - 1) // CELL_UNIT
    cdef bint fits
    while shelf != NULL:
        shelf_lock(self, shelf)
        fits = shelf.cell_room >= units and shelf_open(self)
        if fits:
            ndx_store_size(&shelf.cell_room, shelf.cell_room - units)
            shelf.cells[nbytes] += 1
            shelf_add(shelf, nbytes)
        shelf_unlock(self, shelf)
        if fits or not self.add_cell_room():
            return fits
    return False


cdef inline void cell_give(PoolStore self, size_t nbytes) noexcept nogil:
    """Count an array whose elements lie in its object as gone."""
    cdef PoolShelf *shelf = shelf_of(self)
    cdef size_t units = (nbytes + CELL_UNIT - 1) // CELL_UNIT
    cdef bint much
    shelf_lock(self, shelf)
    shelf_remove(shelf, nbytes)
    shelf.cells[nbytes] -= 1
    ndx_store_size(&shelf.cell_room, shelf.cell_room + units)
    much = shelf.cell_room > CELL_ROOM
    shelf_unlock(self, shelf)
    if much:
        ndx_lock_acquire(&self.lock)
        self.drop_cell_room(CELL_ROOM // 2 * CELL_UNIT)
        ndx_lock_release(&self.lock)

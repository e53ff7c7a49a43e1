from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx.backends._pool.index cimport PoolBlock, PoolSegment
from ndx.backends._pool.store cimport PoolStore, ndx_lock

# What `Pool.find` found for a request, and the steps left to do without the lock.
cdef struct Grant:
    PoolBlock *block
    PoolBlock *spare             # descriptor of the part to split off, if any
    char *fresh                  # memory to commit
    size_t fresh_nbytes
    size_t owner                 # the stream that it is taken from
    bint stolen
    bint cut                     # the block is still to be split to its size
    bint clean                   # the memory is all zeros
    int refusal                  # the limit that forbids it, or ALLOCATED

cdef class Pool(PoolStore):
    cdef size_t small_segment
    cdef size_t large_segment
    cdef size_t cutoff           # of `round`: exponent of two; steps above that size
    cdef size_t initial          # of `arena`
    cdef readonly size_t most    # bytes that the source can ever have
    cdef readonly bint lost      # unusable: this is a forked child
    cdef ndx_lock shown_lock     # taken before `lock`; held while a segment is shown
    cdef PyObject *next_pool     # in the list of all pools, guarded by its lock
    cdef PyObject *prev_pool

    cdef int allocate(self, size_t nbytes, size_t stream, PoolBlock **out,
                      bint *clean) except -1 nogil
    cdef int allocate_slow(self, size_t nbytes, size_t stream, PoolBlock **out,
                           bint *clean) except -1 nogil
    cdef void release(self, PoolBlock *block) noexcept nogil
    cdef void bury(self, PoolBlock *block) noexcept nogil
    cdef void record_events(self, PoolBlock *block) noexcept nogil
    cdef void finish_uses(self, PoolBlock *block) noexcept nogil
    cdef void record_use(self, PoolBlock *block, size_t stream) noexcept nogil
    cdef void order_release(self, PoolBlock *block, size_t stream) noexcept nogil
    cdef bint would_hit(self, size_t nbytes) noexcept nogil
    cdef size_t round(self, size_t nbytes) noexcept nogil
    cdef bint find(self, size_t need, int slot, Grant *grant) noexcept nogil
    cdef bint find_cold(self, size_t need, int small, int slot,
                        Grant *grant) noexcept nogil
    cdef void finish_events(self, PoolBlock *block, size_t stream) noexcept nogil
    cdef void set_limit(self, size_t nbytes) noexcept nogil
    cdef void note_idle(self, uint64_t now) noexcept nogil
    cdef uint64_t look_period(self) noexcept nogil
    cdef size_t idle(self) noexcept nogil
    cdef size_t spare(self) noexcept nogil
    cdef bint leave_to_thread(self, uint64_t when) noexcept nogil
    cdef int show(self, PoolSegment *segment, char *end) noexcept nogil
    cdef void undo_commit(self, Grant *grant) noexcept nogil
    cdef int check_size(self, size_t need) noexcept nogil
    cdef int grow(self, size_t need, int small, int slot) except -1 nogil
    cdef int grow_paged(self, size_t need, int small, int slot) except -1 nogil
    cdef int grow_plain(self, size_t need, int small, int slot) except -1 nogil
    cdef size_t missing(self, size_t nbytes, int reason) noexcept nogil
    cdef bint idle_may_help(self, size_t need, int reason) noexcept nogil
    cdef int refuse(self, size_t need, int reason) noexcept nogil
    cdef int begin_growth(self, size_t nbytes) noexcept nogil
    cdef int reserve_plain(self, size_t nbytes, int small, int slot) except -1 nogil

cdef Pool pool_after(Pool pool)
cdef PyObject *pool_visit(bint first) noexcept nogil
cdef void pool_leave() noexcept nogil

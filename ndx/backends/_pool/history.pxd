from libc.stdint cimport uint64_t

from ndx.backends._pool.pool cimport Pool

cdef enum:
    WINDOWS = 20                 # of which 16 are as long as idle memory is kept

# How much a pool needed at most, from one look to the next.
cdef struct PoolHistory:
    size_t crests[WINDOWS]       # a ring
    uint64_t ends[WINDOWS]       # milliseconds; 0: not written yet
    uint64_t known_since         # when the first of them began
    uint64_t next_look
    int window                   # which is written next

cdef void history_begin(PoolHistory *history) noexcept nogil
cdef bint pool_look(Pool pool, PoolHistory *history, uint64_t now,
                    uint64_t period) noexcept nogil
cdef size_t pool_release_since(Pool pool, PoolHistory *history,
                               uint64_t before, size_t kept) noexcept nogil

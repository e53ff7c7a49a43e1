from libc.stdint cimport uint64_t

from ndx.backends._pool.pool cimport Pool

cdef enum:
    WINDOWS = 20                 # 16 of them span the time that idle memory is kept

# The peak need of a pool in each window, from one look to the next.
cdef struct PoolHistory:
    size_t crests[WINDOWS]       # ring buffer of peaks
    uint64_t ends[WINDOWS]       # milliseconds; 0: not written yet
    uint64_t known_since         # start of the oldest window
    uint64_t next_look
    int window                   # index to write next

cdef void history_begin(PoolHistory *history) noexcept nogil
cdef bint pool_look(Pool pool, PoolHistory *history, uint64_t now,
                    uint64_t period) noexcept nogil
cdef size_t pool_release_since(Pool pool, PoolHistory *history,
                               uint64_t before, size_t kept) noexcept nogil

from libc.stdint cimport uint64_t

from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._pool.pool cimport Pool

cdef size_t pool_trim(Pool pool, size_t target, uint64_t before) noexcept nogil
cdef size_t pool_shrink(Pool pool, size_t nbytes, bint kept) noexcept nogil
cdef void pool_release_bounded(Pool pool, PoolBlock *block, size_t most) noexcept nogil
cdef void pool_synchronize(Pool pool) noexcept nogil
cdef void pool_settle(Pool pool, bint wait) noexcept nogil
cdef void pool_close_stream(Pool pool, size_t stream) noexcept nogil
cdef size_t pool_purge_used(Pool pool, PoolBlock *block, size_t low,
                            size_t high) noexcept nogil

cdef void look_at_pools() noexcept nogil
cdef void watch_arenas(uint64_t after) noexcept nogil
cdef size_t pool_release_since(Pool pool, uint64_t before, size_t kept) noexcept nogil

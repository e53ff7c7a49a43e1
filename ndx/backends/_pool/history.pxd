from libc.stdint cimport uint64_t

from ndx.backends._pool.pool cimport Pool

cdef void look_at_pools() noexcept nogil
cdef size_t pool_release_since(Pool pool, uint64_t before, size_t kept) noexcept nogil

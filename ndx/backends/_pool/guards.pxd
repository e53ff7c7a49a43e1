from ndx._lib.guards cimport Damage
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._pool.pool cimport Pool

cdef void pool_use_guards(Pool pool) noexcept nogil
cdef char *pool_guard(Pool pool, PoolBlock *block, Damage *out,
                      int *count) noexcept nogil
cdef int pool_unguard(Pool pool, PoolBlock *block, Damage *out) noexcept nogil
cdef int pool_find_damage(Pool pool, Damage *out, int room) noexcept nogil

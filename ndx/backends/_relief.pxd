from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._pool.pool cimport Pool
from ndx.backends.base cimport Backend, Memory, ReliefCounters

cdef int retry_from_idle(Pool pool, size_t nbytes, size_t stream, int reason,
                         PoolBlock **out, bint *clean,
                         ReliefCounters *counters) except -1 nogil
cdef Backend relieve(Backend backend, Backend beyond, size_t nbytes, bint zero,
                     const size_t *stream, Memory *out, int reason)

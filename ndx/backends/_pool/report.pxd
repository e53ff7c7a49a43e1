from ndx.backends._pool.pool cimport Pool

cdef dict pool_stats(Pool pool)
cdef dict pool_events(Pool pool)
cdef list pool_snapshot(Pool pool)
cdef list pool_largest_live(Pool pool, int count)
cdef list pool_ranges(Pool pool)

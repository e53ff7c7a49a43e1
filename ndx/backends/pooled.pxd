from libc.stdint cimport uint64_t

from ndx.backends._pool.pool cimport Pool
from ndx.backends.base cimport Backend, Memory
from ndx.backends.source cimport Source
from ndx.backends.user_code cimport UserCode

cdef class PooledBackend(Backend):
    cdef Pool pool
    cdef readonly Backend fallback   # serves what this can't; None: no fallback
    cdef size_t recycled             # bytes given back to avoid growth, in total
    cdef size_t traffic              # bytes allocated, except from quick lists
    cdef public size_t headroom_nbytes   # of the source, left free for others
    cdef size_t stream               # on which new memory is first used
    cdef object given                # type: PoolOptions, as they were at the start
    cdef object hooks                # tuple of callables
    cdef UserCode inside             # threads inside hooks
    cdef bint hooked
    cdef bint guarded            # around each range: `NDX_DEBUG_MEMORY`
    cdef bint attended           # either of these: requests take the slow way
    cdef bint has_cells          # arrays of at most CELL bytes need no range

    cdef object take_options(self, dict given)
    cdef int setup(self, Source source, object options) except -1
    cdef void release_plain(self, Memory *memory) noexcept nogil
    cdef void respect_limits(self) noexcept nogil
    cdef int set_limit(self, object value) except -1
    cdef void recycle(self, size_t nbytes) noexcept nogil
    cdef void keep_headroom(self, size_t nbytes) noexcept nogil
    cdef void check_guards(self, Memory *memory) noexcept nogil
    cdef int notify(self, str action, size_t nbytes, char *ptr) except -1

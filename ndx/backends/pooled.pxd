from libc.stdint cimport uint64_t

from ndx.backends._pool.history cimport PoolHistory
from ndx.backends._pool.pool cimport Pool
from ndx.backends.base cimport Backend, Memory
from ndx.backends.source cimport Source
from ndx.backends.user_code cimport UserCode

cdef class PooledBackend(Backend):
    cdef Pool pool
    cdef readonly Backend fallback   # serves what this can't; None: nobody
    cdef size_t recycled             # bytes given back to avoid growth, in all
    cdef uint64_t traffic            # bytes allocated, but from quick lists
    cdef public size_t headroom_nbytes   # of the source, that are left to others
    cdef public size_t kept_nbytes   # that are held in all, however idle they are
    cdef uint64_t idle_after         # milliseconds; 0: never
    cdef PoolHistory history         # of what was needed, for what is idle
    cdef size_t stream               # that the memory is for, and first used on
    cdef readonly object options     # type: PoolOptions
    cdef object hooks                # tuple of callables
    cdef UserCode inside             # of hooks
    cdef bint hooked

    cdef object take_options(self, dict given)
    cdef int setup(self, Source source, object options) except -1
    cdef size_t idle(self) noexcept nogil
    cdef void look(self) noexcept nogil
    cdef size_t release_some(self, size_t nbytes) noexcept nogil
    cdef void recycle(self, size_t nbytes) noexcept nogil
    cdef void keep_headroom(self, size_t nbytes) noexcept nogil
    cdef int notify(self, str action, size_t nbytes, char *ptr) except -1

from ndx._lib.unraisable cimport Refusals
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport Source

cdef extern from "ndx/internal/placement.h" nogil:
    ctypedef struct Policy "ndx_policy":
        int rule                 # by which the system chooses the nodes of pages

cdef class HostSource(Source):
    cdef size_t huge_from        # bytes of ranges that may be in huge pages
    cdef bint small_pages        # no huge pages at all
    cdef bint locked             # pages stay in memory while they are held
    cdef object numa             # as it was given, and what the system is told
    cdef Policy policy
    cdef Refusals refusals

cdef class HostBackend(PooledBackend):
    pass

cdef bint host_memory(size_t *idle, size_t *total) noexcept nogil

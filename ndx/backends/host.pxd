from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport Source

cdef class HostSource(Source):
    pass

cdef class HostBackend(PooledBackend):
    pass

cdef bint host_memory(size_t *idle, size_t *total) noexcept nogil

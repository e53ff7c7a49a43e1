from ndx._source cimport Source
from ndx.backends.pooled cimport PooledBackend

cdef class HostSource(Source):
    pass

cdef class HostBackend(PooledBackend):
    pass

cdef bint host_memory(size_t *idle, size_t *total) noexcept nogil

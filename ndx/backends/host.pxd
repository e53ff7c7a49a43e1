from ndx._source cimport Source
from ndx.backends.pooled cimport PooledBackend

cdef class HostSource(Source):
    cdef size_t total

cdef class HostBackend(PooledBackend):
    pass

cdef size_t read_available() noexcept

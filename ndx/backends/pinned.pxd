from ndx.backends.cuda cimport CudaBackend, CudaSource
from ndx.backends.pooled cimport PooledBackend

cdef class HostAllocSource(CudaSource):
    pass

cdef class PinnedSource(HostAllocSource):
    cdef dict flying                 # event -> the GPU on which it was recorded

cdef class PinnedBackend(PooledBackend):
    cdef readonly PinnedSource source

cdef class CudaHostBackend(CudaBackend):
    pass

from ndx.backends.cuda cimport CudaBackend, CudaSource
from ndx.backends.pooled cimport PooledBackend

cdef class HostAllocSource(CudaSource):
    pass

cdef class PinnedSource(HostAllocSource):
    cdef dict flying                 # event -> the GPU that it was recorded on

cdef class PinnedBackend(PooledBackend):
    cdef readonly PinnedSource source

cdef class CudaHostBackend(CudaBackend):
    pass

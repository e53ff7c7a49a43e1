from ndx.backends.cuda cimport CudaBackend, CudaSource

cdef class CudaManagedSource(CudaSource):
    pass

cdef class CudaPeerSource(CudaSource):
    pass

cdef class CudaPeerBackend(CudaBackend):
    pass

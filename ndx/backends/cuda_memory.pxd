from ndx.backends.cuda cimport CudaSource

cdef class CudaManagedSource(CudaSource):
    pass

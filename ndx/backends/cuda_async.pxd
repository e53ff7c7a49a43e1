from ndx.backends.cuda cimport CudaSource

cdef class CudaAsyncSource(CudaSource):
    cdef object cuda_pool            # CUDA's handle of its pool

from libc.stdint cimport uintptr_t

from ndx.backends.mmap cimport FileSource
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport Source

cdef class CudaSource(Source):
    cdef readonly int index          # of the GPU whose streams order its use
    cdef readonly int home           # of the GPU whose memory it is
    cdef readonly bint prefetches    # memory that is handed out moves to the GPU
    cdef readonly bint shareable     # other processes can open its ranges
    cdef object cuda                 # the module `cupy.cuda`
    cdef object runtime              # the module `cupy.cuda.runtime`
    cdef dict known                  # handle -> CuPy's stream, which this keeps alive
    cdef list idle_events
    cdef set over                    # handles of destroyed streams

    cdef size_t trim_pool(self) noexcept

cdef class CudaBackend(PooledBackend):
    cdef readonly CudaSource source

cdef object call(CudaSource self, str name, object a=*, object b=*, object c=*,
                 object d=*, object e=*)
cdef int obtain_range(CudaSource self, str function, tuple args, void **ptr) noexcept
cdef uintptr_t record_on(CudaSource self, int index, size_t stream) noexcept

cdef class CudaAsyncSource(CudaSource):
    cdef object cuda_pool            # CUDA's handle of its pool

cdef class CudaFileSource(CudaSource):
    cdef FileSource files

cdef class CudaMmapBackend(CudaBackend):
    pass

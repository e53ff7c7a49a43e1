from ndx._source cimport Source
from ndx.backends.pooled cimport PooledBackend

cdef class CudaSource(Source):
    cdef readonly int index          # of the GPU
    cdef object cuda                 # the module `cupy.cuda`
    cdef object runtime              # its `runtime`
    cdef dict known                  # handle -> CuPy's stream, which lives on
    cdef list idle_events

cdef class CudaBackend(PooledBackend):
    cdef readonly CudaSource source

cdef size_t stream_here(CudaSource source) except? 0

from ndx.backends.cuda cimport CudaBackend, CudaSource
from ndx.backends.mmap cimport FileSource

cdef class CudaFileSource(CudaSource):
    cdef FileSource files

cdef class CudaMmapBackend(CudaBackend):
    pass

from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport Source

cdef class FileSource(Source):
    cdef readonly str directory
    cdef bytes path_bytes
    cdef const char *path            # in `path_bytes`
    cdef bint frozen             # the files keep their content: others read them
    cdef long process                # id of the process that made it

cdef class MmapBackend(PooledBackend):
    cdef size_t keep_idle

cdef FileSource file_source(object directory)

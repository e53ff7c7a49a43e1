from ndx.backends.base cimport Backend, Memory

cdef Backend relieve(Backend backend, Backend beyond, size_t nbytes, bint zero,
                     const size_t *stream, Memory *out, int reason)
cdef int insist(Backend backend, size_t nbytes, Memory *out, int reason) except -1

from ndx.backends.base cimport Backend, Memory

cdef Backend relieve(Backend backend, Backend beyond, size_t nbytes, bint zero,
                     const size_t *stream, Memory *out, int reason)

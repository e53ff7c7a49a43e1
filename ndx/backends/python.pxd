from ndx.backends.base cimport Backend

cdef class PythonBackend(Backend):
    cdef set inside              # threads that are in acquire or discard

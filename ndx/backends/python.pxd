from ndx.backends.base cimport Backend

cdef class PythonBackend(Backend):
    pass

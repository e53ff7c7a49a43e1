from ndx.backends.base cimport Backend
from ndx.backends.user_code cimport UserCode

cdef class PythonBackend(Backend):
    cdef UserCode inside         # threads inside `acquire` or `discard`

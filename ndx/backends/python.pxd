from cpython.buffer cimport Py_buffer
from cpython.object cimport PyObject

from ndx.backends.base cimport Backend
from ndx.backends.user_code cimport UserCode

# An acquired range. The buffer's own `obj` may differ from the acquired object (if that
# has a `__buffer__` in Python), or be NULL.
cdef struct Acquired:
    Py_buffer view
    PyObject *source             # strong
    char *ptr                    # of the range lent, of which
    size_t nbytes                # so many bytes are in use
    Acquired *next               # in a list of guarded ranges
    Acquired *prev

cdef class PythonBackend(Backend):
    cdef UserCode inside         # threads inside `acquire` or `discard`
    cdef size_t guard            # bytes on either side of each range; 0: none
    cdef Acquired guarded        # head of a circular list: the ranges in use

"""Where the data of NumPy's own arrays comes from, in the code of a scope (NEP 49).

NumPy keeps its handler in a context variable of its own: for this thread or task.
"""

cimport numpy as cnp
from cpython.object cimport PyObject

from ndx.backends.base cimport Backend

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_SetHandler(object handler)
    # NULL: NumPy's own.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)

# What makes NumPy ask ndx for memory; made by a room above this one.
cdef object numpy_handler = None


cdef class PlainNumpy:
    """A backend that NumPy's new arrays come from."""

    def __cinit__(self, Backend backend not None):
        self.backend = backend


cdef int set_numpy_handler(object handler) except -1:
    """Say which of NumPy's handlers serves in the scope of ``use(numpy=True)``."""
    global numpy_handler
    numpy_handler = handler
    return 0


cdef object switch_numpy(bint ours):
    """Let NumPy take memory from us, or from its own; return the handler before."""
    if ours:
        return PyDataMem_SetHandler(numpy_handler)
    return reset_numpy_handler(NULL)


cdef void restore_numpy(object handler) noexcept:
    """Give NumPy the handler that `switch_numpy` returned; None: it stays."""
    if handler is None:
        return
    try:
        PyDataMem_SetHandler(handler)
    except MemoryError:
        # It is set when NumPy's next array asks in vain for a scope.
        pass

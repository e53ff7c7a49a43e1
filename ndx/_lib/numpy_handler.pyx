"""Which allocator NumPy takes the data of its new arrays from (NEP 49), now.

NumPy keeps its handler in a context variable of its own: for this thread or task.
"""

cimport numpy as cnp
from cpython.object cimport PyObject

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_GetHandler()
    object PyDataMem_SetHandler(object handler)
    # NULL: NumPy's own.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)

# Both make NumPy ask ndx for memory: while ndx calls it, and in the scope of
# ``use(numpy=True)``. A module above this one makes them.
cdef object of_results = None
cdef object of_plain = None


cdef int set_handlers(object results, object plain) except -1:
    """Say which handlers of NumPy are those of ndx."""
    global of_results, of_plain
    of_results = results
    of_plain = plain
    return 0


cdef object switch_numpy(bint ours):
    """Let NumPy take memory from ndx, or from its own; return the handler before."""
    if ours:
        return PyDataMem_SetHandler(of_plain)
    return reset_numpy_handler(NULL)


cdef object suspend_handlers():
    """Let NumPy take memory from its own while a callback of the user runs.

    A callback inside of an allocation that made a NumPy array would ask the same
    backend again. Returns what `restore_numpy` puts back; None: nothing was changed.
    """
    handler = PyDataMem_GetHandler()
    if handler is of_results or handler is of_plain:
        return reset_numpy_handler(NULL)
    return None


cdef void restore_numpy(object handler) noexcept:
    """Give NumPy the handler that was returned before; None: it stays."""
    if handler is None:
        return
    try:
        PyDataMem_SetHandler(handler)
    except MemoryError:
        # It is set when NumPy's next array asks in vain for a scope.
        pass

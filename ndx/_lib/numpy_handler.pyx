"""NumPy's allocator for the data of its new arrays (NEP 49), and how to switch it.

NumPy keeps the handler in a context variable, so it is set for one thread or task.
"""

cimport numpy as cnp
from cpython.object cimport PyObject

cnp.import_array()

cdef extern from "numpy/arrayobject.h":
    object PyDataMem_GetHandler()
    object PyDataMem_SetHandler(object handler)
    # Given NULL, it restores NumPy's default handler.
    object reset_numpy_handler "PyDataMem_SetHandler" (PyObject *handler)

# With either handler NumPy allocates from ndx: the first while ndx calls NumPy, the
# second in the scope of ``use(numpy=True)``. A module above this one makes them.
cdef object of_results = None
cdef object of_plain = None


cdef int set_handlers(object results, object plain) except -1:
    """Register the two handlers that allocate from ndx."""
    global of_results, of_plain
    of_results = results
    of_plain = plain
    return 0


cdef object switch_numpy(bint ours):
    """Let NumPy allocate from ndx or by itself; return the previous handler."""
    if ours:
        return PyDataMem_SetHandler(of_plain)
    return reset_numpy_handler(NULL)


cdef object suspend_handlers():
    """Let NumPy allocate by itself while a user's callback runs.

    Otherwise a callback inside an allocation that makes a NumPy array would reenter the
    same backend. Returns the handler for `restore_numpy`; None: nothing was changed.
    """
    handler = PyDataMem_GetHandler()
    if handler is of_results or handler is of_plain:
        return reset_numpy_handler(NULL)
    return None


cdef void restore_numpy(object handler) noexcept:
    """Restore the handler that `suspend_handlers` returned; None: do nothing."""
    if handler is None:
        return
    try:
        PyDataMem_SetHandler(handler)
    except MemoryError:
        # The next allocation of NumPy that finds no scope sets it.
        pass

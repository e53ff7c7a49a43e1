from ndx._lib.free_threading cimport NDX_FREE_THREADED

cdef extern from "Python.h":
    int PyGC_Disable() noexcept
    int PyGC_Enable() noexcept

cdef int collect_for_memory() except -1
cdef int scope_ended() except -1

cdef inline bint pause_collector() noexcept:
    """Stop the cyclic collector; return the value that `resume_collector` needs.

    For a few lines during which no finalizer may run, because it could leave the scope
    that these lines change. The lines don't release the GIL. Without one, all threads
    would do so, and it runs only between instructions of Python.
    """
    return not NDX_FREE_THREADED and PyGC_Disable()

cdef inline void resume_collector(bint paused) noexcept:
    if paused:
        PyGC_Enable()

cdef extern from "Python.h":
    int PyGC_Disable() noexcept
    int PyGC_Enable() noexcept

cdef int collect_for_memory() except -1
cdef int scope_ended() except -1

cdef inline bint pause_collector() noexcept:
    """Let no allocation of an object start a collection; return what resumes it.

    For a few lines between which no finalizer may run, since it could leave the scope
    that they are about. They don't release the GIL.
    """
    return PyGC_Disable()

cdef inline void resume_collector(bint paused) noexcept:
    if paused:
        PyGC_Enable()

# Save and restore the pending exception around code that must not see it. Memory may be
# released while an exception propagates, and releasing may run Python code.

cdef extern from *:
    """
    #if PY_VERSION_HEX >= 0x030C0000
    typedef PyObject *ndx_pending_error;
    #define ndx_set_error_aside() PyErr_GetRaisedException()
    #define ndx_put_error_back(error) PyErr_SetRaisedException(error)
    #else
    typedef struct { PyObject *kind, *value, *traceback; } ndx_pending_error;
    static inline ndx_pending_error ndx_set_error_aside(void) {
        ndx_pending_error error;
        PyErr_Fetch(&error.kind, &error.value, &error.traceback);
        return error;
    }
    #define ndx_put_error_back(error) \\
        PyErr_Restore((error).kind, (error).value, (error).traceback)
    #endif
    """
    ctypedef struct PendingError "ndx_pending_error":
        pass
    PendingError set_error_aside "ndx_set_error_aside" () noexcept
    void put_error_back "ndx_put_error_back" (PendingError error) noexcept

"""Turning NumPy's floating-point warnings off, at a tenth of the cost of `errstate`.

``errstate`` makes a new state at each entry and sets NumPy's context variable to it.
Here the state is made once. What this relies on is checked when it is imported; if
that fails, `errstate` itself is used.
"""

from cpython.contextvars cimport PyContextVar_Reset, PyContextVar_Set

import numpy as np

cdef object variable = None       # NumPy's own, or None
cdef object quiet = None          # its value for all="ignore"


cdef int find_variable() except -1:
    global variable, quiet
    try:
        from numpy._core.umath import _extobj_contextvar, _make_extobj

        found = _make_extobj(all="ignore")
        token = _extobj_contextvar.set(found)
        try:
            works = set(np.geterr().values()) == {"ignore"}
        finally:
            _extobj_contextvar.reset(token)
    except (ImportError, AttributeError, TypeError, ValueError):
        return 0
    if works:
        variable, quiet = _extobj_contextvar, found
    return 0


find_variable()


cdef object silence():
    """Turn the warnings off; return what `restore` takes."""
    if variable is None:
        state = np.errstate(all="ignore")
        state.__enter__()
        return state
    return PyContextVar_Set(variable, quiet)


cdef int restore(object token) except -1:
    """Turn them on again, as they were before `silence`."""
    if variable is None:
        token.__exit__(None, None, None)
    else:
        PyContextVar_Reset(variable, token)
    return 0

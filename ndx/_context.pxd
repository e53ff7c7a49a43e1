from cpython.object cimport PyObject

from ndx._arena cimport Arena
from ndx._memory cimport Block
from ndx.backends.base cimport Backend

# Where new arrays go: an immutable value of a ContextVar.
cdef class Context:
    cdef readonly Backend backend
    cdef readonly Arena arena        # None: straight from the backend
    cdef readonly object scope       # what entered it
    cdef object home                 # the contextvars.Context that it was entered in
    cdef object previous             # Context, or None for the process's default

cdef Context current_context()
cdef Block *allocate_block(size_t nbytes, bint zero) except NULL
cdef Backend spill_backend()
cdef Block *allocate_detached(size_t nbytes) except NULL
cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL
cdef bint context_is_inherited(Context context) noexcept
cdef int push_context(Context context) except -1
cdef int pop_context(object scope) except -1

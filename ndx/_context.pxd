from cpython.object cimport PyObject

from ndx._memory cimport Block
from ndx._arenas.base cimport Arena
from ndx.backends.base cimport Backend

# Where new arrays go: a value of a ContextVar, and a link to the one before.
cdef class Context:
    cdef readonly Backend backend    # outside of the arena
    cdef readonly Arena arena        # None: straight from the backend
    cdef readonly Scope scope        # what entered it
    cdef object home                 # the contextvars.Context that it was entered in
    cdef Context previous            # None: the process's default
    cdef Context lower               # of the scope's entry before this one
    cdef bint left_early             # out of order: to be left with those above it
    cdef bint abandoned              # left, but still in its home's chain
    cdef object numpy                # whether NumPy's arrays come from here; or None
    cdef object numpy_before         # NumPy's handler before the entry; None: unchanged
    cdef object refusal              # why NumPy last got no memory; None: it did

# What is entered and left: `ndx.use`, a workspace, ...
cdef class Scope:
    cdef Py_ssize_t settled          # exits that are still to come, and already done
    cdef int left(self) except -1
    cdef Context innermost(self)

cdef Context entered_context()
cdef Context numpy_context()
cdef int set_numpy_handler(object handler) except -1
cdef Context outer_context(Context entered)
cdef Context current_context()
cdef bint is_here(Context context) noexcept
cdef Arena current_arena()
cdef Arena enclosing_arena()
cdef Arena open_arena(object wanted)
cdef Block *allocate_block(size_t nbytes, bint zero) except NULL
cdef Backend spill_backend()
cdef Block *allocate_detached(size_t nbytes) except NULL
cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL
cdef int enter_scope(Context context, Context outer) except -1
cdef int leave_scope(Scope scope, object kind) except -1

from ndx._arenas.base cimport Arena
from ndx._memory cimport Block
from ndx._plain_numpy cimport PlainNumpy
from ndx.backends.base cimport Backend

# The value of a ContextVar: a backend and, where it is at home, what was entered.
cdef class Context:
    cdef Backend backend             # None: the process's default, whatever that is
    cdef Backend host                # of the CPU's arrays; None: the default one
    cdef Scope scope                 # a `use` that made it current, or None
    cdef Context previous            # that is current again when `scope` is left
    cdef object home                 # the contextvars.Context with `entries`; or None
    cdef Entry top                   # the innermost entry
    cdef bint left_early             # `scope`, out of order
    cdef bint abandoned              # `scope` was left; the variable could not be set
    cdef PlainNumpy numpy            # where NumPy's arrays come from; None: its own
    cdef object numpy_before         # NumPy's handler outside; None: the same

# A scope that only its own thread or task can see: a workspace, or none.
cdef class Entry:
    cdef Arena arena                 # that serves the CPU; None: the backend does
    cdef Arena on_device             # of this entry, where it is a device's; or None
    cdef Scope scope
    cdef Context context             # that it is in; None: it is not entered
    cdef Entry lower                 # of the same context
    cdef Entry before                # of the same scope
    cdef bint left_early

# What is entered and left: `ndx.use`, a workspace, ...
cdef class Scope:
    cdef Py_ssize_t settled          # exits that are still to come, and already done
    cdef int left(self, Backend outside) except -1
    cdef Entry last_entry(self)

cdef Context top_context()
cdef Context before(Context context)
cdef Arena arena_of(Context context)
cdef Arena arena_in(Entry entry)
cdef Backend default_backend_of_new()
cdef Backend outer_backend()
cdef PlainNumpy plain_numpy()
cdef Scope scope_of(Arena arena)
cdef void *current_home() noexcept
cdef bint is_here(Context context) noexcept
cdef Block *allocate_block(size_t nbytes, bint zero) except NULL
cdef Backend spill_backend()
cdef Block *allocate_detached(size_t nbytes) except NULL
cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL
cdef int enter_context(Context context) except -1
cdef Context own_context()
cdef int push(Context context, Entry entry) noexcept
cdef void unlink_entry(Entry entry) noexcept
cdef int leave_scope(Scope scope, object kind) except -1

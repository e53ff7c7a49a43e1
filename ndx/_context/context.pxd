from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint64_t

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block
from ndx._lib.free_threading cimport NDX_FREE_THREADED, ndx_load_flag
from ndx._lib.interpreter cimport Owned, is_here
from ndx._lib.unraisable cimport Refusals
from ndx.backends.base cimport Backend

cdef extern from "Python.h":
    # With pointers: Cython would count a reference to an object that it passes.
    int PyContextVar_Get(PyObject *variable, PyObject *default_value,
                         PyObject **value) except -1

# Allocates the data of NumPy's new arrays within a scope of ``use(numpy=True)``.
cdef class PlainNumpy:
    cdef Backend backend
    cdef Refusals refusals           # of allocations for NumPy

# The value of the ContextVar: a backend, and the entries of one thread or task.
cdef class Context(Owned):
    cdef Backend backend             # None: the process's current default
    cdef Backend host                # backend of the CPU's arrays; None: the default
    cdef Entry gate                  # entry of the `use` that set this context; or None
    cdef Context previous            # current again when `gate` is left
    cdef Entry top                   # innermost entry
    cdef bint abandoned              # skipped: the variable could not be reset
    cdef bint hollow                 # abandoned as soon as its entries have ended
    cdef PlainNumpy numpy            # allocates NumPy's arrays; None: NumPy itself
    cdef object numpy_before         # NumPy's handler outside; None: unchanged

# One entry into a scope, visible only to the thread or task that made it.
cdef class Entry:
    cdef Arena arena                 # serves the CPU; None: the backend serves it
    cdef Arena on_device             # the arena entered, if it is on a device
    cdef Scope scope
    cdef Scope owner                 # whose list it is in: what `scope` has entered
    cdef Context context             # None: not entered
    cdef Entry lower                 # next outer entry of the same context
    cdef Entry before                # previous entry of the same scope
    cdef void *frame                 # frame that entered; never dereferenced
    cdef void *code                  # of that frame; never dereferenced
    cdef void *home                  # of a settled entry; never dereferenced
    cdef uint64_t serial             # counts entries in the order of entering
    cdef uint64_t thread             # thread that entered
    cdef object task                 # weak reference to the task that entered
    cdef bint early                  # its exit came before those of inner scopes
    cdef bint ending                 # left by a thread whose own it is not

# Base class of `ndx.use`, of workspaces and of all else that is entered and left.
cdef class Scope:
    cdef Entry top                   # last entry that has not ended
    cdef Entry settled               # ended entries whose exit may still come
    cdef int left(self, Entry entry, Backend outside) except -1
    cdef tuple peers(self)
    cdef tuple owners(self)
    cdef Entry last_entry(self)

cdef object variable             # the ContextVar

cdef Context before(Context context)
cdef Backend backend_of(Context context)
cdef void drop_entry(Entry entry) noexcept
cdef inline Arena arena_of(Context context):
    """Return the CPU's arena of the innermost scope here; None without one."""
    if context is None or context.top is None or not is_here(context):
        return None
    return context.top.arena

cdef Backend outer_backend()
cdef PlainNumpy plain_numpy()
cdef int check_numpy(object numpy, Backend backend) except -1
cdef Scope scope_of(Arena arena)
cdef Block *allocate_block(size_t nbytes, bint zero, size_t room) except NULL
cdef Backend spill_backend()
cdef Block *adopt_block(char *ptr, size_t nbytes, object memory_owner) except NULL

# Scopes whose exits came in another thread, without a GIL: set by `scopes`.
cdef struct Late:
    bint any
    int (*end)() except -1       # those of this thread

cdef Late late


cdef inline int end_left() except -1:
    """End the scopes here that were left elsewhere.

    Without a GIL only its own thread ends a scope, as long as it runs.
    """
    return late.end() if NDX_FREE_THREADED and ndx_load_flag(&late.any) else 0

cdef inline Context top_context():
    """Return the current context, once all scopes here that were left have ended."""
    end_left()
    return last_context()

cdef inline Context last_context():
    """Return the variable's current value that is not abandoned; None without one."""
    cdef PyObject *value = NULL
    cdef Context context
    PyContextVar_Get(<PyObject *>variable, NULL, &value)
    if value == NULL:
        return None
    found = <object>value
    Py_DECREF(found)
    # Checked: whoever iterates over a contextvars.Context can set any value.
    context = found
    if context is not None and context.abandoned:
        return before(context)
    return context

cdef Backend placing_backend()
cdef int placing_device() except -1
cdef int named_device(object device) except -1

cdef inline int device_of_new(object device) except -1:
    """Return the device number for a ``device=`` argument; None: that of new arrays."""
    return placing_device() if device is None else named_device(device)

cdef Arena current_arena(int device)
cdef Arena enclosing_arena(int device)
cdef Arena open_arena(object wanted)
cdef Block *allocate_on(int device, size_t nbytes, bint zero, bint detached,
                        Arena arena, size_t room) except NULL

from cpython.contextvars cimport PyContextVar_Get
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport uint64_t

from ndx._arenas.arena cimport Arena
from ndx._blocks.block cimport Block
from ndx._context.numpy_memory cimport PlainNumpy
from ndx.backends.base cimport Backend

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        # The current contextvars.Context; NULL before its first use.
        PyObject *context
    PyThreadState *PyThreadState_Get() noexcept

cdef extern from "ndx/here.h":
    # Which thread, contextvars.Context and frame run now.
    ctypedef struct Here "ndx_Here":
        PyObject *home
        void *frame
        uint64_t thread
    Here ndx_here() noexcept

# The value of a ContextVar: a backend and, where it is at home, what was entered.
cdef class Context:
    cdef Backend backend             # None: the process's default, whatever that is
    cdef Backend host                # of the CPU's arrays; None: the default one
    cdef Entry gate                  # of the `use` that made it current, or None
    cdef Context previous            # that is current again when `gate` is left
    cdef object home                 # the contextvars.Context with `entries`; or None
    cdef Entry top                   # the innermost entry
    cdef bint abandoned              # passed over: the variable could not be set
    cdef bint hollow                 # to be, when its entries have ended
    cdef PlainNumpy numpy            # where NumPy's arrays come from; None: its own
    cdef object numpy_before         # NumPy's handler outside; None: the same

# One entry into a scope, that only its own thread or task can see.
cdef class Entry:
    cdef Arena arena                 # that serves the CPU; None: the backend does
    cdef Arena on_device             # of this entry, where it is a device's; or None
    cdef Scope scope
    cdef Context context             # that it is in; None: it is not entered
    cdef Entry lower                 # of the same context
    cdef Entry before                # of the same scope
    cdef void *frame                 # that entered; only to compare
    cdef void *home                  # of one that is settled; only to compare
    cdef uint64_t serial             # in the order in which entries are made
    cdef uint64_t thread             # that entered
    cdef object task                 # that entered a workspace, a weak reference
    cdef bint early                  # its exit has come, but not its turn

# What is entered and left: `ndx.use`, a workspace, ...
cdef class Scope:
    cdef Entry top                   # its last entry that has not ended
    cdef Entry settled               # entries that ended, and whose exit may yet come
    cdef int left(self, Entry entry, Backend outside) except -1
    cdef list peers(self)
    cdef list last_entries(self)

cdef object variable             # the ContextVar

cdef Context before(Context context)
cdef Backend backend_of(Context context)
cdef void drop_entry(Scope owner, Entry entry) noexcept
cdef Arena arena_of(Context context)
cdef Arena arena_in(Entry entry)
cdef Backend default_backend_of_new()
cdef Backend outer_backend()
cdef PlainNumpy plain_numpy()
cdef Scope scope_of(Arena arena)
cdef Block *allocate_block(size_t nbytes, bint zero) except NULL
cdef Backend spill_backend()
cdef Block *allocate_detached(size_t nbytes) except NULL
cdef Block *adopt_block(char *ptr, size_t nbytes, object keeper) except NULL

cdef inline Context top_context():
    """Return the current value of the variable; None if it has none."""
    cdef PyObject *value = NULL
    cdef Context context
    PyContextVar_Get(variable, NULL, &value)
    if value == NULL:
        return None
    context = <Context>value
    Py_DECREF(context)
    if context is not None and context.abandoned:
        return before(context)
    return context

cdef inline bint is_here(Context context) noexcept:
    """Whether the entries of a context are those of this thread or task.

    Tasks and ``asyncio.to_thread`` run in a copy of their parent's context, and find
    the parent's value there. They must not allocate from its arena, whose cycle may
    end before they do.
    """
    return <PyObject *>context.home == PyThreadState_Get().context

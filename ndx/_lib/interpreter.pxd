from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx._lib.free_threading cimport ndx_get_address, ndx_set_address

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState *PyThreadState_Get() noexcept
    uint64_t PyThreadState_GetID(PyThreadState *state) noexcept

cdef extern from "ndx/internal/thread_state.h":
    PyObject *ndx_context() noexcept

# The running thread, task and function. The pointers are only compared.
cdef struct Here:
    PyObject *home               # of the task, or of a thread outside of tasks
    void *frame                  # of the innermost Python function
    void *code                   # of the same: a later frame may have that address
    uint64_t thread              # never reused, unlike a thread's ident

# Whether homes are contextvars.Context objects, which `ndx_context` returns.
cdef bint home_is_context

cdef PyObject *current_home() noexcept
cdef Here current_place() noexcept

# Base class of what a thread or task owns, as long as it does.
cdef class Owned:
    cdef object home                 # of the owner (`Here.home`); or None
    cdef const void *place           # the same, which other threads compare; or NULL

cdef inline const void *home_of(Owned owned) noexcept:
    # Ordered: who finds no owner replaces what the last one left in `home`.
    return ndx_get_address(&owned.place)

cdef inline void set_home(Owned owned, PyObject *home) noexcept:
    """Let a thread or task own something; NULL: nobody."""
    owned.home = None if home == NULL else <object>home
    # Last: who finds no owner becomes it.
    ndx_set_address(&owned.place, home)

cdef inline bint is_here(Owned owned) noexcept:
    """Whether this thread or task owns something.

    Tasks and ``asyncio.to_thread`` run in a copy of their parent's context and inherit
    the values of its variables. They must not allocate from the parent's arena, whose
    cycle may end before they do.
    """
    cdef const void *home = home_of(owned)
    return home == ndx_context() or (not home_is_context and home == current_home())

cdef int note_running() except -1
cdef bint is_running(uint64_t thread) noexcept
cdef object current_task()

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

cdef extern from "ndx/internal/thread_state.h":
    PyObject *ndx_context() noexcept

# Which thread and task, and which function, is running: only to compare.
cdef struct Here:
    PyObject *home               # of the task, or of a thread outside of tasks
    void *frame                  # of the innermost Python function
    uint64_t thread              # never given again, unlike an ident

# Whether the home is the current contextvars.Context, which `ndx_context` returns.
cdef bint home_is_context

cdef PyObject *current_home() noexcept
cdef Here current_place() noexcept
cdef bint is_running(uint64_t thread) noexcept
cdef object current_task()

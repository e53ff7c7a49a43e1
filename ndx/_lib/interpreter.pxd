from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

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
cdef int note_running() except -1
cdef bint is_running(uint64_t thread) noexcept
cdef object current_task()

"""The identity of running code: its thread, its task, its function.

A scope is entered by a thread or an asyncio task, and each of them has its own
contextvars.Context. The address of that object identifies it, but CPython has no public
function that returns this address, and none that identifies the running function
without making a frame object. Both are therefore read from private fields of CPython's
thread state, if the checks below pass. The slower fallback compares tasks, threads and
frame objects.
"""

import sys
import threading

from ndx._lib.free_threading cimport NDX_FREE_THREADED, ndx_keep_for_ever

from ndx._lib.interpreter_checks import is_code, is_context, is_frame

cdef extern from "ndx/internal/thread_state.h":
    void *ndx_frame() noexcept
    void *ndx_frame_code(void *frame) noexcept
    void *ndx_frame_object() noexcept
    void *ndx_frame_object_code(void *frame) noexcept

cdef extern from "Python.h":
    ctypedef struct PyInterpreterState:
        pass
    PyThreadState *PyThreadState_Next(PyThreadState *state) noexcept
    PyObject *PyThreadState_GetDict() noexcept
    PyInterpreterState *PyInterpreterState_Get() noexcept
    PyThreadState *PyInterpreterState_ThreadHead(PyInterpreterState *state) noexcept


def keep_for_ever(x):
    """Let threads use an object without counting their references, if there is no GIL.

    It stays until the process ends.
    """
    ndx_keep_for_ever(x)


def _context_address():
    return <size_t>ndx_context()


def _frame_address():
    return <size_t>ndx_frame()


def _code_address():
    return <size_t>ndx_frame_code(ndx_frame())


home_is_context = is_context(_context_address)
cdef bint frame_is_known = is_frame(_frame_address) and is_code(_code_address)


cdef class Owned:
    pass


cdef object current_task():
    """Return the running asyncio task; None outside of tasks."""
    # There is no task before asyncio is imported, so it is not imported here. Another
    # thread may be importing it at this moment.
    asyncio = sys.modules.get("asyncio")
    running_loop = getattr(asyncio, "_get_running_loop", None)
    if running_loop is None or running_loop() is None:
        return None
    return asyncio.current_task()


cdef PyObject *current_home() noexcept:
    """Return an object that identifies this thread or task, as a borrowed reference.

    NULL if it would be a contextvars.Context, and the thread has none yet.
    """
    cdef PyObject *home
    if home_is_context:
        return ndx_context()
    task = current_task()
    # Running code keeps its task alive.
    home = <PyObject *>task if task is not None else PyThreadState_GetDict()
    return <PyObject *>None if home == NULL else home


cdef Here current_place() noexcept:
    """Return the home, the frame and the thread of the running code."""
    cdef Here here
    here.home = current_home()
    if frame_is_known:
        here.frame = ndx_frame()
        here.code = ndx_frame_code(here.frame)
    else:
        here.frame = ndx_frame_object()
        here.code = ndx_frame_object_code(here.frame)
    here.thread = PyThreadState_GetID(PyThreadState_Get())
    return here


cdef extern from *:
    """
    #ifdef Py_GIL_DISABLED
    static __thread int ndx_noted;
    #else
    static int ndx_noted = 1;
    #endif
    """
    bint noted "ndx_noted"

# Without a GIL the list of threads changes under one that walks along it. So a thread
# that enters a scope says so, and its end is that of an object that it has.
cdef set running = set()
cdef object of_thread = threading.local()


cdef class Running:
    """Dies with its thread."""

    cdef uint64_t thread

    def __cinit__(self):
        self.thread = PyThreadState_GetID(PyThreadState_Get())
        running.add(self.thread)

    def __dealloc__(self):
        running.discard(self.thread)


cdef int note_running() except -1:
    """Let `is_running` know this thread."""
    global noted
    if not noted:
        of_thread.running = Running()
        noted = True
    return 0


cdef bint is_running(uint64_t thread) noexcept:
    """Whether a thread, which has called `note_running`, has not ended."""
    if NDX_FREE_THREADED:
        return thread in running
    cdef PyThreadState *state = PyInterpreterState_ThreadHead(PyInterpreterState_Get())
    while state != NULL:
        if PyThreadState_GetID(state) == thread:
            return True
        state = PyThreadState_Next(state)
    return False

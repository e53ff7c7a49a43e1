"""Exceptions in code that can't raise: deallocators, the ends of scopes, reports.

An ordinary exception there is reported and forgotten. An interruption must not be lost:
Ctrl-C, a time-out that the handler of a signal raises, ``sys.exit``. Python runs these
handlers between any two instructions of the main thread, also between those of a
function that cannot raise. The main thread raises an interruption at the next chance.
"""

cimport cython
from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.ref cimport Py_DECREF, Py_INCREF

import _signal
import sys
import threading

cdef extern from "Python.h":
    int Py_AddPendingCall(int (*call)(void *), void *arg) noexcept


cdef bint is_interruption(object error) noexcept:
    """Whether an exception ends the program, or comes from the handler of a signal."""
    if not isinstance(error, Exception):
        return True
    traceback = error.__traceback__
    if traceback is None:
        return False
    handlers = codes_of_handlers()
    while handlers and traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False


cdef set codes_of_handlers():
    """Return the code objects of the functions that handle signals now."""
    found = set()
    for number in range(1, _signal.NSIG):
        handler = _signal.getsignal(number)
        handler = getattr(handler, "__func__", handler)
        found.add(getattr(handler, "__code__", None))
    found.discard(None)
    return found


cdef int raise_pending(void *error) noexcept:
    """Raise the exception of `raise_later` in the main thread."""
    raised = <object>error
    Py_DECREF(raised)
    PyErr_SetObject(type(raised), raised)
    return -1


cdef bint raise_later(object error) noexcept:
    """Have the main thread raise an interruption that was caught in it.

    Return False, without any effect, if the exception is no interruption, was caught in
    another thread, or too many are pending.
    """
    try:
        if threading.get_ident() != threading.main_thread().ident:
            return False
    except BaseException as other:
        # From a signal's handler, which runs in the main thread alone: raise that, too.
        queue(other)
    return is_interruption(error) and queue(error)


cdef bint queue(object error) noexcept:
    """Have the main thread raise an exception; False if too many wait."""
    Py_INCREF(error)
    if Py_AddPendingCall(raise_pending, <void *>error) != 0:
        Py_DECREF(error)
        return False
    return True


cdef object graver(object error, object other):
    """Return the exception to raise of two: the first, or the first interruption."""
    if error is None or (is_interruption(other) and not is_interruption(error)):
        return other
    return error


cdef void report_ignored(object where, object error) noexcept:
    """Give a caught exception to ``sys.unraisablehook``; raise an interruption later.

    `PyErr_WriteUnraisable` alone reports the pending exception; in an ``except`` clause
    none is pending any more.
    """
    if raise_later(error):
        return
    PyErr_SetObject(type(error), error)
    PyErr_WriteUnraisable(where)


# ---- Refused allocations -------------------------------------------------------------
# NumPy and C++ learn of a refusal by a NULL pointer, and raise a MemoryError of their
# own. The error that says why is kept meanwhile, for the thread that was refused. It
# must not be raised for another request: who may receive it takes it away in any case.

# no_gc_clear: a backend that the collector has cleared still gives memory back, and
# calls these methods.
@cython.no_gc_clear
cdef class Refusals:
    """The last refusal of each thread."""

    def __cinit__(self):
        # No `threading.local`: one that the collector has cleared can't be used.
        self.of_threads = {}

    cdef void keep(self, object error) noexcept:
        """Keep the error by which this thread was refused, without its traceback.

        The frames of a traceback may hold arrays.
        """
        try:
            self.of_threads[PyThread_get_thread_ident()] = error
        except MemoryError:
            # There is no memory to keep the error either.
            return
        while error is not None and error.__traceback__ is not None:
            error.__traceback__ = None
            error = error.__cause__ or error.__context__

    cdef object take(self):
        """Return, and forget, the error by which this thread was refused; or None."""
        if not self.of_threads:
            return None
        return self.of_threads.pop(PyThread_get_thread_ident(), None)

    cdef void drop(self) noexcept:
        """Forget this thread's refusal; if it was an interruption, raise that later."""
        error = self.take()
        if error is not None:
            raise_later(error)


cdef bint is_of_allocator(object error) noexcept:
    """Whether NumPy raises such an error when its allocator has no memory."""
    kind = type(error)
    if kind is MemoryError:
        return not error.args
    return issubclass(kind, MemoryError) and kind.__module__.startswith("numpy.")


# ---- The logger "ndx" ----------------------------------------------------------------

cdef void log_event(str message, tuple arguments) noexcept:
    """Log an event at the level INFO; `message` is a format for the arguments."""
    log("info", message, arguments)


cdef void log_warning(str message, tuple arguments) noexcept:
    """Log what is likely to be a mistake, at the level WARNING."""
    log("warning", message, arguments)


cdef void log(str level, str message, tuple arguments) noexcept:
    """Log a message at a level.

    Nothing is imported, since files may be what is short: a program that has not
    imported `logging` reads no logs. A handler that fails can't break an allocation.
    """
    # Another thread may be importing `logging` at this moment.
    get_logger = getattr(sys.modules.get("logging"), "getLogger", None)
    if get_logger is not None:
        try:
            getattr(get_logger("ndx"), level)(message, *arguments)
        except BaseException as failure:
            report_ignored(get_logger, failure)

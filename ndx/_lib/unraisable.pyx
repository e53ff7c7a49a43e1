"""Exceptions in code that can't raise: deallocators, the ends of scopes, reports.

An ordinary exception there is reported and forgotten. An interruption must not be lost:
Ctrl-C, a time-out that the handler of a signal raises, ``sys.exit``. Python runs these
handlers between any two instructions of the main thread, also between those of a
function that cannot raise. The main thread raises an interruption at the next chance.
"""

import _signal
import threading

from cpython.exc cimport PyErr_SetObject, PyErr_WriteUnraisable
from cpython.ref cimport Py_DECREF, Py_INCREF

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

"""Calls of user code, shared by backends and sources written in Python.

Such a call runs inside an allocation. It may use NumPy, whose arrays come from NumPy's
own allocator meanwhile, and it may drop arrays of ndx. It may not make arrays that the
same backend would serve.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_CONTIG, PyBUF_FORMAT, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from ndx._lib.numpy_allocator cimport restore_numpy, suspend_handlers
from ndx._lib.unraisable cimport Refusals, report_ignored

import os
import sys

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()

# Looked up at import: at exit the module may be empty.
cdef object is_finalizing = sys.is_finalizing

# The threads by which this process, its parent, and so on, were forked.
cdef list forkers = []


def note_fork():
    """Record, in a forked child, the thread of the parent that it continues."""
    forkers.append(PyThread_get_thread_ident())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=note_fork)


# no_gc_clear: a backend that the collector has cleared still gives memory back, and
# calls these methods.
@cython.no_gc_clear
cdef class UserCode:
    """Which threads are in the user's code of one backend, source or hook."""

    def __cinit__(self):
        # No `threading.local`: one that the collector has cleared can't be used.
        self.threads = set()
        self.refusals = Refusals()
        self.forks = len(forkers)

    cdef bint is_inside(self) except -1:
        """Whether this thread is in the user's code already."""
        if self.forks != len(forkers):
            self.forget_parents()
        return PyThread_get_thread_ident() in self.threads

    cdef int forget_parents(self) except -1:
        """Forget the threads that did not follow into this forked child."""
        for forker in forkers[self.forks:]:
            self.threads.intersection_update((forker,))
        self.refusals.of_threads.clear()
        self.forks = len(forkers)
        return 0

    cdef object enter(self, str message):
        """Begin a call; raise if this thread is inside of one, unless message is None.

        Returns what `leave` is given.
        """
        cdef bint nested = self.is_inside()
        if nested and message is not None:
            raise RuntimeError(message)
        handler = suspend_handlers()
        if not nested:
            self.threads.add(PyThread_get_thread_ident())
        return nested, handler

    cdef void leave(self, object entered) noexcept:
        """End a call that `enter` began."""
        nested, handler = entered
        if not nested:
            self.threads.discard(PyThread_get_thread_ident())
        restore_numpy(handler)


cdef object begin_buffer(UserCode inside, object owner, str name, str message,
                         size_t nbytes, Py_buffer *view):
    """Return the object that `acquire` gives, with its buffer held.

    `message` is as for `enter`. Exceptions of `acquire` are raised.
    """
    entered = inside.enter(message)
    try:
        source = owner.acquire(nbytes)
        try:
            hold_buffer(name, source, nbytes, view)
        except BaseException:
            if source is not None:
                owner.discard(source)
            raise
    finally:
        inside.leave(entered)
    return source


cdef void end_buffer(UserCode inside, object owner, Py_buffer *view,
                     PyObject *source) noexcept:
    """Let go of a buffer, and give it to `discard`; takes the reference to `source`."""
    held = <object>source
    Py_DECREF(held)
    if is_finalizing():
        # Python clears modules and functions by now, and calling them may crash. The
        # system takes all back.
        PyBuffer_Release(view)
        return
    # A nested call comes from an array that `discard` itself made and dropped.
    entered = inside.enter(None)
    try:
        PyBuffer_Release(view)
        owner.discard(held)
        # The end of the buffer's owner may run code of the user, too.
        held = None
    except BaseException as error:
        report_ignored(owner, error)
    finally:
        inside.leave(entered)


cdef int hold_buffer(str owner, object source, size_t nbytes,
                     Py_buffer *view) except -1:
    """Hold the buffer of what `acquire` returned; raise if it can't be used."""
    cdef Py_ssize_t found
    try:
        # With the format: it says whether references to objects lie in the memory.
        PyObject_GetBuffer(source, view, PyBUF_CONTIG | PyBUF_FORMAT)
    except (TypeError, ValueError, BufferError) as error:
        kind = type(source).__name__
        kind = "None" if source is None else f"an object of type {kind}"
        raise TypeError(
            f"{owner}: acquire({nbytes}) returned {kind}, whose memory can't be used "
            f"({error}); it must return a writable, contiguous buffer of so many "
            "bytes, such as bytearray(nbytes)") from error
    if holds_objects(view.format):
        PyBuffer_Release(view)
        raise TypeError(
            f"{owner}: acquire({nbytes}) returned a buffer of objects of Python, which "
            "can't be written over; it must return a writable, contiguous buffer of so "
            "many bytes, such as bytearray(nbytes)")
    if <size_t>view.len < nbytes:
        found = view.len
        PyBuffer_Release(view)
        raise ValueError(
            f"{owner}: acquire({nbytes}) returned a buffer of {found} bytes; it must "
            "return a writable, contiguous buffer of at least as many as it was asked "
            "for")
    return 0


cdef bint holds_objects(const char *format) noexcept:
    """Whether a buffer's format (PEP 3118) has references to objects, ``O``."""
    cdef bint in_name = False
    if format == NULL:
        return False
    while format[0] != 0:
        if format[0] == b":":
            in_name = not in_name
        elif format[0] == b"O" and not in_name:
            return True
        format += 1
    return False

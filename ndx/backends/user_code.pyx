"""Calls of user code, shared by backends and sources written in Python.

Such a call runs inside an allocation. It may use NumPy, whose arrays come from NumPy's
own allocator meanwhile, and it may drop arrays of ndx. It may not make arrays that the
same backend would serve.
"""

cimport cython
from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer

from ndx._lib.numpy_handler cimport restore_numpy, suspend_handlers

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident()


# Not cleared by the collector: what it belongs to is used until its memory is back.
@cython.no_gc_clear
cdef class UserCode:
    """Which threads are in the user's code of one backend, source or hook."""

    def __cinit__(self):
        self.threads = set()

    cdef bint is_inside(self) except -1:
        """Whether this thread is in the user's code already."""
        return PyThread_get_thread_ident() in self.threads

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


cdef int hold_buffer(str owner, object source, size_t nbytes,
                     Py_buffer *view) except -1:
    """Hold the buffer of what `acquire` returned; raise if it can't be used."""
    cdef Py_ssize_t found
    try:
        PyObject_GetBuffer(source, view, PyBUF_WRITABLE)
    except (TypeError, ValueError, BufferError) as error:
        kind = type(source).__name__
        kind = "None" if source is None else f"an object of type {kind}"
        raise TypeError(
            f"{owner}: acquire({nbytes}) returned {kind}, whose memory can't be used "
            f"({error}); it must return a writable, contiguous buffer of so many "
            "bytes, such as bytearray(nbytes)") from error
    if <size_t>view.len < nbytes:
        found = view.len
        PyBuffer_Release(view)
        raise ValueError(
            f"{owner}: acquire({nbytes}) returned a buffer of {found} bytes; it must "
            "return a writable, contiguous buffer of at least as many as it was asked "
            "for")
    return 0

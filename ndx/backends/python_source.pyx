"""The adaptor for sources that are written in Python."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc

from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx.backends.source cimport NO_RANGE, RAISED, RESERVED, Source
from ndx.backends.user_code cimport UserCode, begin_buffer, end_buffer

__all__ = ["PythonSource"]

cdef extern from "Python.h":
    void PyErr_SetObject(object kind, object value) noexcept


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class PythonSource(Source):
    """Base class for a source of large ranges that is written in Python.

    Override `acquire`, and `discard` if there is something to undo; give an instance
    to `ndx.backends.PooledBackend`.

    Examples
    --------
    >>> import mmap
    >>> import ndx
    >>> class Shared(ndx.backends.PythonSource):
    ...     def acquire(self, nbytes):
    ...         return mmap.mmap(-1, nbytes)
    >>> backend = ndx.backends.PooledBackend(Shared(), limit="64MiB")
    >>> with ndx.use(backend):
    ...     x = ndx.ones(3)
    >>> backend.stats()["reserved_bytes"] >= 24
    True
    """

    cdef dict views              # address of a Py_buffer -> what it is of
    cdef UserCode inside

    def __cinit__(self, *args, **options):
        self.views = {}
        self.inside = UserCode()

    def acquire(self, nbytes: int) -> Any:
        """Return a writable, contiguous buffer of at least `nbytes` bytes.

        Raise MemoryError to refuse; ndx then frees what it can and asks for less.
        """
        raise NotImplementedError(f"{type(self).__name__} must override acquire")

    def discard(self, buffer: Any) -> None:
        """Take back a buffer that `acquire` gave; its memory is no longer used."""

    def _take_refusal(self):
        return self.inside.refusals.take()

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return PythonSource_reserve(self, nbytes, ptr, cookie)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        cdef PendingError pending
        with gil:
            pending = set_error_aside()
            PythonSource_release(self, <Py_buffer *>cookie)
            put_error_back(pending)


cdef int PythonSource_reserve(PythonSource self, size_t nbytes, void **ptr,
                              void **cookie) noexcept:
    cdef Py_buffer *view = <Py_buffer *>malloc(sizeof(Py_buffer))
    cdef int status = RAISED
    if view == NULL:
        return NO_RANGE
    raised = None
    try:
        PythonSource_acquire(self, nbytes + self.alignment, view)
        status = RESERVED
    except MemoryError as error:
        status = NO_RANGE
        self.inside.refusals.keep(error)
    except BaseException as error:
        raised = error
    if status == RESERVED:
        ptr[0] = <void *>((<uintptr_t>view.buf + self.alignment - 1)
                          & ~<uintptr_t>(self.alignment - 1))
        cookie[0] = view
    else:
        free(view)
        if raised is not None:
            PyErr_SetObject(type(raised), raised)
    return status


cdef int PythonSource_acquire(PythonSource self, size_t nbytes,
                              Py_buffer *view) except -1:
    """Hold a buffer of at least `nbytes` bytes."""
    name = type(self).__name__
    self.views[<uintptr_t>view] = begin_buffer(
        self.inside, self, f"source {name!r}",
        f"acquire or discard of source {name!r} made an array in a pool that it serves "
        "itself; they must make none: inside them, use ndx.use('host') or NumPy",
        nbytes, view)
    return 0


cdef void PythonSource_release(PythonSource self, Py_buffer *view) noexcept:
    source = self.views.pop(<uintptr_t>view)
    Py_INCREF(source)
    cdef PyObject *held = <PyObject *>source
    source = None
    end_buffer(self.inside, self, view, held)
    free(view)

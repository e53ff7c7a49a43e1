"""The error of a refused allocation, on its way through code that can't pass it on.

NumPy and C++ learn of a refusal by a NULL pointer, and raise a MemoryError of their
own. The error that says why is kept meanwhile, for the thread that was refused. It must
not be raised for another request: who may receive it takes it away in any case.
"""

cimport cython
from cpython.pythread cimport PyThread_get_thread_ident

from ndx._lib.unraisable cimport raise_later


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

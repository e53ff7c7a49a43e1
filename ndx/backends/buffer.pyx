"""Ranges of a pool without an array: for other libraries, and for streams."""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uintptr_t

from ndx._lib.tracing cimport trace, untrace
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends._relief cimport relieve
from ndx.backends.base cimport ALLOCATED, Backend, Memory
from ndx.backends.pooled cimport PooledBackend

from ndx._lib.sizes import parse_size
from ndx.backends._registry import get

__all__ = ["Buffer"]


@cython.final
@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class Buffer:
    """A range of a backend's memory, or of what that falls back to.

    It goes back to the pool when it is released or its last reference is gone, in
    the order of its stream's work.

    Parameters
    ----------
    backend : str or PooledBackend
        Whose memory it is: one with a pool, or its name.
    nbytes : int or str
        Its size; 0 is served without any memory.
    stream : int, default 0
        The stream that uses it first.

    Raises
    ------
    ndx.OutOfMemoryError
        If there is no more; nothing is changed then.

    Examples
    --------
    >>> import ndx
    >>> buffer = ndx.backends.Buffer("host", "1KiB")
    >>> buffer.nbytes, buffer.address % 64
    (1024, 0)
    >>> buffer.release()
    """

    cdef Memory memory
    cdef readonly Backend backend
    cdef readonly size_t nbytes
    cdef readonly size_t stream
    cdef Py_ssize_t exports

    def __cinit__(self, backend: str | PooledBackend, nbytes: Size, *,
                  size_t stream=0) -> None:
        cdef PooledBackend pooled = pooled_backend(backend)
        cdef Backend server = pooled
        cdef int status
        cdef size_t size = parse_size(nbytes, "nbytes")
        self.stream = stream
        self.nbytes = size
        if size == 0:
            self.backend = pooled
            return
        with nogil:
            status = pooled.allocate_on(size, False, stream, &self.memory)
        if status != ALLOCATED:
            server = relieve(
                pooled, None, size, False, &stream, &self.memory, status)
        if not server.device_number:
            trace(self.memory.ptr, size)
        # Set last: only then there is something to release.
        self.backend = server

    def __dealloc__(self):
        if self.backend is not None:
            give_back(self.backend, &self.memory)

    def __getbuffer__(self, Py_buffer *view, int flags):
        if not self.backend.host_accessible:
            raise BufferError("the CPU can't read the memory of this backend")
        with cython.critical_section(self):
            if self.nbytes and self.memory.ptr == NULL:
                raise BufferError("the buffer has been released")
            PyBuffer_FillInfo(view, self, self.memory.ptr, self.nbytes, 0, flags)
            self.exports += 1

    def __releasebuffer__(self, Py_buffer *view):
        with cython.critical_section(self):
            self.exports -= 1

    @property
    def address(self) -> int:
        """Address of the first byte; 0 if the buffer has no memory."""
        return <uintptr_t>self.memory.ptr

    @property
    def rounded(self) -> int:
        """Bytes of the pool that the buffer takes, after rounding."""
        if not isinstance(self.backend, PooledBackend):
            return 0
        with cython.critical_section(self):
            return 0 if self.memory.ptr == NULL \
                else (<PoolBlock *>self.memory.cookie).nbytes

    def record_use(self, size_t stream) -> None:
        """Note that another stream uses the memory: it is reused only after that use.

        A device's memory waits for all work that the stream is given before the
        release; page-locked memory for the work that the current GPU's stream has been
        given so far.
        """
        with cython.critical_section(self):
            if self.memory.ptr != NULL:
                self.backend.use_on(&self.memory, stream)

    def release(self) -> None:
        """Give the memory back now; a second call does nothing."""
        cdef Memory memory
        with cython.critical_section(self):
            if self.exports:
                raise BufferError(
                    "the buffer can't be released: a memoryview or an array of it is "
                    "alive; release it when that is gone")
            memory = self.memory
            self.memory.ptr = NULL
        give_back(self.backend, &memory)

    def __repr__(self):
        return f"<Buffer of {self.nbytes} bytes at {self.address:#x}>"


cdef PooledBackend pooled_backend(object backend):
    """Return the backend of a name, or a backend, if it has a pool."""
    found = get(backend)
    if not isinstance(found, PooledBackend):
        raise TypeError(
            f"a buffer is a range of a pool, and {found!r} has none: give an "
            "ndx.backends.PooledBackend, or a name such as 'host'")
    return found


cdef void give_back(Backend backend, Memory *memory) noexcept:
    if memory.ptr != NULL:
        untrace(memory.ptr)
        with nogil:
            backend.release(memory)

"""What is done when a backend refuses a request: only what can help against the reason.

A pool refuses only when its own idle memory can't help (`PooledBackend.may_help`).
Then, until the request is served:

====================  ======  ========  ==========  =========
reason                others  fallback  collection  callbacks
====================  ======  ========  ==========  =========
the system, a device  x       x         x           x
or a disk is full
limit of the process  x       x         x           x
limit of the device   x       x         x           x
limit of the backend          x         x           x
an arena is full              x         x           x
an adaptor                    x         x           x
larger than possible          x                     x
====================  ======  ========  ==========  =========

*others*: the idle memory of pools that compete for the same resource. The fallback
comes before the collection, which takes milliseconds: where a program works beyond a
limit, every array does.
"""

cimport cython

from ndx._lib.collector cimport collect_for_memory
from ndx._lib.numpy_handler cimport restore_numpy, suspend_handlers
from ndx.backends.base cimport (
    ALLOCATED, DEVICE_LIMIT, NO_MEMORY, OWN_LIMIT, PROCESS_LIMIT, SOURCE_FULL,
    TOO_LARGE, Backend, Memory,
)

from ndx.backends import _out_of_memory, _pressure

# What each Status is called in Python.
cdef tuple REASONS = (
    None, "system", "source", "limit", "process", "size", "arena", "adaptor",
    "device")


@cython.final
cdef class Request:
    """A request that was refused, and the backends that may still serve it."""

    cdef Backend backend
    cdef Backend fallback        # the backend's own, or None
    cdef Backend beyond          # what is asked after these, or None
    cdef Backend server          # who serves it: the backend, or `beyond`
    cdef size_t nbytes
    cdef bint zero
    cdef const size_t *stream    # NULL: the backend's current one
    cdef Memory *out
    cdef int reason              # why the backend refused,
    cdef int fallback_reason     # the fallback,
    cdef int beyond_reason       # and the last one

    cdef int ask(self, Backend backend, bint elsewhere) except -1:
        if elsewhere:
            return backend.allocate_elsewhere(self.nbytes, self.zero, self.out)
        if self.stream != NULL:
            return backend.allocate_on(
                self.nbytes, self.zero, self.stream[0], self.out)
        return backend.allocate(self.nbytes, self.zero, self.out)

    cdef int ask_again(self) except -1:
        """Ask all of them in turn; return whether the request is served."""
        self.reason = self.ask(self.backend, False)
        return self.go_on()

    cdef int go_on(self) except -1:
        """Do the same after the backend has refused."""
        self.server = self.backend
        self.reason = self.press(self.backend, self.backend, False, self.reason)
        if self.reason == ALLOCATED:
            return True
        if self.fallback is not None:
            self.fallback_reason = self.press(
                self.backend, self.fallback, True, self.ask(self.backend, True))
            if self.fallback_reason == ALLOCATED:
                return True
        if self.beyond is None:
            return False
        self.server = self.beyond
        self.beyond_reason = self.press(
            self.beyond, self.beyond, False, self.ask(self.beyond, False))
        return self.beyond_reason == ALLOCATED

    cdef int press(self, Backend backend, Backend short, bint elsewhere,
                   int reason) except -1:
        """Ask again if idle memory of other pools helps the one that is short of it."""
        if reason == ALLOCATED:
            return ALLOCATED
        reason = find_reason(short, self.nbytes, reason)
        if reason in (NO_MEMORY, SOURCE_FULL, PROCESS_LIMIT, DEVICE_LIMIT) and \
                _pressure.release_others(short, self.nbytes, REASONS[reason]):
            reason = self.ask(backend, elsewhere)
            if reason != ALLOCATED:
                reason = find_reason(short, self.nbytes, reason)
        return reason


cdef int find_reason(Backend backend, size_t nbytes, int reason) except -1:
    """Return the reason of a refusal, also of a backend that gives none.

    Backends may know NO_MEMORY only; but what their limit is, and what they hold, they
    must tell.
    """
    cdef size_t limit
    if reason != NO_MEMORY or backend.limit_nbytes < 0:
        return reason
    limit = backend.limit_nbytes
    if nbytes > limit:
        return TOO_LARGE
    if backend.stats()["reserved_bytes"] + nbytes > limit:
        return OWN_LIMIT
    return NO_MEMORY


cdef Backend relieve(Backend backend, Backend beyond, size_t nbytes, bint zero,
                     const size_t *stream, Memory *out, int reason):
    """Serve a request that a backend refused; return it, or `beyond` if that serves.

    Raises OutOfMemoryError, with nothing changed, if all of that is not enough.
    """
    cdef Request request = Request.__new__(Request)
    request.backend = backend
    request.fallback = _pressure.fallback_of(backend)
    request.beyond = beyond
    request.nbytes = nbytes
    request.zero = zero
    request.stream = stream
    request.out = out
    request.reason = reason
    return serve(request)


cdef int insist(Backend backend, size_t nbytes, Memory *out, int reason) except -1:
    """Do the same, but let no fallback serve it."""
    cdef Request request = Request.__new__(Request)
    request.backend = backend
    request.nbytes = nbytes
    request.out = out
    request.reason = reason
    serve(request)
    return 0


cdef Backend serve(Request request):
    if request.go_on():
        return request.server
    # What runs now (finalizers, callbacks) may use NumPy.
    handler = suspend_handlers()
    try:
        if persist(request):
            return request.server
    finally:
        restore_numpy(handler)
    refusals = [(request.backend, REASONS[request.reason])]
    if request.fallback is not None:
        refusals.append((request.fallback, REASONS[request.fallback_reason]))
    if request.beyond is not None:
        refusals.append((request.beyond, REASONS[request.beyond_reason]))
    raise _out_of_memory.error(request.nbytes, refusals)


cdef int persist(Request request) except -1:
    """Do what takes long, or runs code of users; return whether that served."""
    cdef Backend backend = request.backend
    if request.reason != TOO_LARGE:
        if _pressure.release_own(backend) and request.ask_again():
            return True
        if collect_for_memory():
            _pressure.release_own(backend)
            if request.ask_again():
                return True
    for _ in _pressure.callbacks(request.nbytes):
        _pressure.release_own(backend)
        if request.ask_again():
            return True
    return False

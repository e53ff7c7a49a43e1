"""Backends around a backend: each sees the requests, and passes them on.

They can be stacked. Memory belongs to the innermost one; an adaptor keeps the one
that it is around alive.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from ndx._lib.numpy_allocator cimport restore_numpy, suspend_handlers
from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport report_ignored
from ndx.backends.base cimport (
    ALLOCATED, LOST, NOT_PASSED, TRY_AGAIN, Backend, Counters, Memory, counters_add,
    counters_remove,
)

import threading
import time
import traceback

from ndx._lib.sizes import parse_size
from ndx._lib.text import Text
from ndx.backends._pressure import (
    is_asked_again, note_asked_again, register_class, set_asked_again,
)
from ndx.backends._registry import get

__all__ = [
    "Adaptor", "FailureCallbackAdaptor", "LimitingAdaptor", "LoggingAdaptor",
    "TrackingAdaptor",
]


# The upstream until `__init__` sets another: derived classes may not call it, and calls
# of their methods must not crash then.
cdef Backend NO_UPSTREAM = Backend()


cdef int MOST_NESTED = 100


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class Adaptor(Backend):
    """Base class: counts the requests that pass. Override the methods that are called.

    Parameters
    ----------
    upstream : str or Backend
        The backend that serves the requests, or its name.
    """

    cdef readonly Backend upstream
    cdef dict servers            # address -> the fallback that served the range
    cdef size_t bound            # on the bytes of live ranges
    cdef size_t on_their_way     # bytes of requests that upstream is asked for
    cdef int nested              # how many adaptors pass a request on

    def __cinit__(self, *args, **options):
        self.servers = {}
        self.upstream = NO_UPSTREAM
        self.bound = <size_t>-1

    def __init__(self, upstream: BackendLike) -> None:
        cdef Backend found = get(upstream)
        if self.upstream is not NO_UPSTREAM and self.upstream is not found:
            raise RuntimeError(
                f"{self!r} has an upstream already, to which its ranges go back; make "
                "another adaptor")
        self.nested = 1 + (<Adaptor>found).nested if isinstance(found, Adaptor) else 1
        if self.nested > MOST_NESTED:
            raise ValueError(
                f"{type(self).__name__} of a chain of {MOST_NESTED} adaptors: each "
                "passes each request on, and longer chains do not fit on the stack")
        self.upstream = found
        self.name = found.name
        self.device = found.device
        self.host_accessible = found.host_accessible
        self.device_number = found.device_number

    def _missing(self):
        if self.upstream is not NO_UPSTREAM:
            return None
        return ("has no upstream, since its __init__ did not call that of the base "
                "class: super().__init__(upstream)")

    def _take_refusal(self):
        return self.upstream._take_refusal()

    def before(self, nbytes: int) -> bool:
        """Return whether a request may pass; called before it does."""
        return True

    def allocated(self, nbytes: int, address: int) -> None:
        """Take note of a range; an exception gives it back and is raised."""

    def refused(self, nbytes: int) -> bool:
        """Return whether to ask upstream again, after it has refused."""
        return False

    def released(self, nbytes: int, address: int) -> None:
        """Take note that a range is about to be given back."""

    def largest_live(self) -> list[tuple[int, int]]:
        """Return (bytes, number) of the largest live ranges upstream."""
        return self.upstream.largest_live()

    def memory_info(self) -> tuple[int | None, int | None]:
        """Return the free and all bytes of the source; None where not known."""
        return self.upstream.memory_info()

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        with gil:
            return Adaptor_pass(self, nbytes, zero, False, out)

    cdef int allocate_from_fallback(self, size_t nbytes, bint zero, Memory *out,
                                    PyObject **server) except -1:
        server[0] = <PyObject *>self
        return Adaptor_pass(self, nbytes, zero, True, out)

    cdef void release(self, Memory *memory) noexcept nogil:
        with gil:
            Adaptor_release(self, memory)

    cdef void purge(self, Memory *memory, size_t low, size_t high) noexcept nogil:
        with gil:
            Adaptor_server(self, memory, False).purge(memory, low, high)

    cdef size_t trim_idle(self) noexcept nogil:
        return self.upstream.trim_idle()

    # The memory is upstream's, on its device: only upstream can touch and order it. A
    # range of the fallback is the CPU's, and no stream uses it.

    cdef void clear(self, char *ptr, size_t nbytes) noexcept nogil:
        self.upstream.clear(ptr, nbytes)

    cdef void copy(self, char *out, const char *ptr, size_t nbytes) noexcept nogil:
        self.upstream.copy(out, ptr, nbytes)

    cdef size_t current_stream(self) except? 0:
        return self.upstream.current_stream()

    cdef int check_arena(self, str name) except -1:
        return self.upstream.check_arena(name)

    cdef void use_on(self, Memory *memory, size_t stream) noexcept nogil:
        with gil:
            Adaptor_server(self, memory, False).use_on(memory, stream)

    cdef int finish(self, Memory *memory) except -1 nogil:
        with gil:
            Adaptor_server(self, memory, False).finish(memory)
        return 0

    cdef void hand_over(self, size_t stream, size_t before) noexcept nogil:
        self.upstream.hand_over(stream, before)

    cdef void read_counters(self, Counters *out) noexcept nogil:
        cdef Counters inner
        self.upstream.read_counters(&inner)
        out[0] = self.counters
        # Only upstream knows the bytes held from the system.
        out.reserved = inner.reserved
        out.peak_reserved = inner.peak_reserved
        out.peak_reserved_time = inner.peak_reserved_time
        out.system_allocations = inner.system_allocations
        out.system_frees = inner.system_frees


cdef int Adaptor_pass(Adaptor self, size_t nbytes, bint zero, bint fallback,
                      Memory *out) except -1:
    """Pass a request on, with NumPy's own allocator for the overridden methods."""
    handler = suspend_handlers()
    try:
        return Adaptor_allocate(self, nbytes, zero, fallback, out)
    finally:
        restore_numpy(handler)


cdef int Adaptor_allocate(Adaptor self, size_t nbytes, bint zero, bint fallback,
                          Memory *out) except -1:
    """Pass a request on to upstream, if the adaptor's bound allows it."""
    cdef size_t live
    if not self.before(nbytes):
        return NOT_PASSED
    with cython.critical_section(self):
        live = self.counters.allocated + self.on_their_way
        if nbytes > self.bound - min(self.bound, live):
            return NOT_PASSED
        # Counted before the range is obtained: upstream may let other threads run.
        self.on_their_way += nbytes
    try:
        return Adaptor_obtain(self, nbytes, zero, fallback, out)
    finally:
        with cython.critical_section(self):
            self.on_their_way -= nbytes


cdef int Adaptor_obtain(Adaptor self, size_t nbytes, bint zero, bint fallback,
                        Memory *out) except -1:
    """Ask upstream, or its fallback."""
    cdef int status
    cdef Backend lender
    cdef PyObject *server = <PyObject *>self.upstream
    if fallback:
        status = self.upstream.allocate_from_fallback(nbytes, zero, out, &server)
        if status != ALLOCATED:
            return status
    else:
        status = self.upstream.allocate(nbytes, zero, out)
        while status != ALLOCATED:
            if status in (LOST, TRY_AGAIN) or not self.refused(nbytes):
                return status
            status = self.upstream.allocate(nbytes, zero, out)
    lender = <Backend>server
    try:
        if lender is not self.upstream:
            self.servers[<uintptr_t>out.ptr] = lender
        self.allocated(nbytes, <uintptr_t>out.ptr)
    except BaseException:
        self.servers.pop(<uintptr_t>out.ptr, None)
        lender.release(out)
        raise
    with cython.critical_section(self):
        counters_add(&self.counters, nbytes)
    return ALLOCATED


cdef Backend Adaptor_server(Adaptor self, const Memory *memory, bint forget):
    """Return the backend that served a range: upstream, or its fallback."""
    if not self.servers:
        return self.upstream
    if forget:
        return self.servers.pop(<uintptr_t>memory.ptr, self.upstream)
    return self.servers.get(<uintptr_t>memory.ptr, self.upstream)


cdef void Adaptor_release(Adaptor self, Memory *memory) noexcept:
    cdef PendingError pending = set_error_aside()
    cdef size_t nbytes = memory.nbytes
    try:
        handler = suspend_handlers()
        try:
            self.released(memory.nbytes, <uintptr_t>memory.ptr)
        finally:
            restore_numpy(handler)
    except BaseException as error:
        report_ignored(self, error)
    Adaptor_server(self, memory, True).release(memory)
    # The range counts as live until now: `released` and upstream may let other threads
    # run.
    with cython.critical_section(self):
        counters_remove(&self.counters, nbytes)
    put_error_back(pending)


register_class("adaptor", Adaptor)


@cython.binding(False)
@cython.embedsignature(True)
cdef class LimitingAdaptor(Adaptor):
    """Limit the bytes of live ranges that are passed on.

    Parameters
    ----------
    upstream : str or Backend
        The backend that serves the requests, or its name.
    nbytes : int or str
        The bound on what is live at once. (A backend's own ``limit`` is on what it
        holds from the system.)

    Examples
    --------
    >>> import ndx
    >>> small = ndx.memory.LimitingAdaptor("host", "1KiB")
    >>> with ndx.use(small):
    ...     x = ndx.zeros(128)
    """

    def __init__(self, upstream: BackendLike, nbytes: Size) -> None:
        Adaptor.__init__(self, upstream)
        self.bound = parse_size(nbytes, "nbytes")

    @property
    def limit(self) -> int:
        """The bound, as `allowed`."""
        return self.bound

    @property
    def allowed(self) -> int:
        """The bound on what is live at once, in bytes."""
        return self.bound


@cython.binding(False)
@cython.embedsignature(True)
cdef class LoggingAdaptor(Adaptor):
    """Write each request to a file, in the CSV format of RMM's logs.

    Rows are buffered: `flush` and `close` write them out.

    Parameters
    ----------
    upstream : str or Backend
        The backend that serves the requests, or its name.
    file : path or file
        Where to; a path is opened, and closed by `close`.
    """

    cdef object file
    cdef bint own

    def __init__(self, upstream: BackendLike, file: TextPath | TextIO) -> None:
        Adaptor.__init__(self, upstream)
        self.own = not hasattr(file, "write")
        self.file = open(file, "w", encoding="ascii") if self.own else file
        self.file.write("Thread,Time,Action,Pointer,Size,Stream\n")

    cdef write(self, str action, object nbytes, object address):
        with cython.critical_section(self):
            file = self.file
        if file is None:
            return
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now))
        file.write(f"{threading.get_ident()},{stamp}.{int(now % 1 * 1e6):06d},"
                   f"{action},{address:#x},{nbytes},0\n")

    def allocated(self, nbytes: int, address: int) -> None:
        """Write a line."""
        self.write("allocate", nbytes, address)

    def refused(self, nbytes: int) -> bool:
        """Write a line; don't ask again."""
        self.write("allocate failure", nbytes, 0)
        return False

    def released(self, nbytes: int, address: int) -> None:
        """Write a line."""
        self.write("free", nbytes, address)

    def flush(self) -> None:
        """Write the buffered rows to the file."""
        with cython.critical_section(self):
            file = self.file
        if file is not None:
            file.flush()

    def close(self) -> None:
        """Stop writing, and close the file if the adaptor has opened it."""
        with cython.critical_section(self):
            file, self.file = self.file, None
        if file is not None and self.own:
            file.close()


@cython.binding(False)
@cython.embedsignature(True)
cdef class TrackingAdaptor(Adaptor):
    """Remember each live range, and who made it.

    Parameters
    ----------
    upstream : str or Backend
        The backend that serves the requests, or its name.
    stacks : bool, default True
        Whether to keep the stack of Python at the allocation: some microseconds.
    """

    cdef dict live
    cdef bint stacks

    def __init__(self, upstream: BackendLike, *, stacks: bool = True) -> None:
        Adaptor.__init__(self, upstream)
        self.live = {}
        self.stacks = stacks

    def allocated(self, nbytes: int, address: int) -> None:
        """Remember a range."""
        stack = None
        if self.stacks:
            stack = traceback.StackSummary.extract(
                traceback.walk_stack(None), limit=16, lookup_lines=False)
        self.live[address] = nbytes, stack

    def released(self, nbytes: int, address: int) -> None:
        """Forget a range."""
        self.live.pop(address, None)

    def outstanding(self) -> list[tuple[int, int, StackSummary | None]]:
        """Return (address, bytes, stack or None) of all live ranges, by address."""
        return [(address, *value) for address, value in sorted(self.live.items())]

    def report(self) -> str:
        """Return the live ranges as text, the largest first."""
        ranges = sorted(self.outstanding(), key=by_size)
        lines = [f"{len(ranges)} ranges, {self.counters.allocated} bytes"]
        for address, nbytes, stack in ranges:
            lines.append(f"{nbytes} bytes at {address:#x}")
            if stack:
                lines += [f"    {frame.filename}:{frame.lineno} {frame.name}"
                          for frame in stack]
        return Text("\n".join(lines))


def by_size(item):
    """Return the key that sorts the largest range first."""
    return -item[1]


class Turns(threading.local):
    """Whether this thread runs the callback, and how often it may still call it."""

    calling = False
    left = 0


@cython.binding(False)
@cython.embedsignature(True)
cdef class FailureCallbackAdaptor(Adaptor):
    """Ask a function what to do when there is no more memory.

    Parameters
    ----------
    upstream : str or Backend
        The backend that serves the requests, or its name.
    callback : callable
        Called with the bytes asked for; the request is made again if it returns
        true, but no more than `times` times.
    times : int, default 3
        How often one request is made again.
    """

    cdef object callback
    cdef int times
    cdef object here             # Turns

    def __init__(self, upstream: BackendLike, callback: Callable[[int], object], *,
                 int times=3) -> None:
        Adaptor.__init__(self, upstream)
        self.callback = callback
        self.times = times
        self.here = Turns()
        note_asked_again()

    def before(self, nbytes: int) -> bool:
        """Allow the function `times` calls again, at the start of each request."""
        if not (self.here.calling or is_asked_again()):
            self.here.left = self.times
        return True

    def refused(self, nbytes: int) -> bool:
        """Ask the function; requests that it makes itself don't call it again."""
        if self.here.calling or self.here.left <= 0:
            return False
        self.here.left -= 1
        self.here.calling = True
        before = set_asked_again(False)
        try:
            return bool(self.callback(nbytes))
        finally:
            set_asked_again(before)
            self.here.calling = False

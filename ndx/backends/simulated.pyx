"""A device that is not there: what a pool of GPU memory meets, without a GPU.

Its memory is the host's, of a fixed capacity, dirty when it is new. Streams have
work that is done when the test says so, and any call can be made to fail.
"""

cimport cython
from libc.stdint cimport uintptr_t
from libc.string cimport memset

from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport NO_RANGE, NO_ROOM, RESERVED, Source

import time

from ndx._lib.sizes import parse_size
from ndx.backends._pool.options import OptionsSignature, PoolOptions, options_class

__all__ = ["SimulatedBackend", "SimulatedSource"]

cdef extern from "ndx/internal/pages.h" nogil:
    void *ndx_reserve_at(size_t nbytes, bint whole, size_t step)
    void ndx_unreserve(void *ptr, size_t nbytes)

cdef enum:
    ALIGN = 512
    DIRT = 0xA5


@cython.binding(False)
@cython.embedsignature(True)
cdef class SimulatedSource(Source):
    """The device: what it has, what was asked of it, and what fails.

    Attributes
    ----------
    held : int
        Bytes given out; never more than `capacity`.
    calls : int
        Requests for memory so far.
    fail_at : set of int
        Requests, counted from 0, that are refused whatever there is.
    broken : bool
        Whether memory can't be taken back either: purges fail.
    waits : list of (int, int, int)
        (stream that waits, stream that it waits for, how much of its work).
    synchronizations : int
        How often the host waited.
    """

    cdef readonly size_t capacity
    cdef readonly size_t held
    cdef readonly size_t calls
    cdef readonly size_t synchronizations
    cdef public set fail_at          # type: set[int]
    cdef public bint broken
    cdef public double latency
    cdef public list waits           # type: list[tuple[int, int, int]]
    cdef dict given              # stream -> units of work that it was given
    cdef dict finished           # stream -> how many of them are done
    cdef dict tickets            # event -> (stream, units)
    cdef size_t last_event

    def __cinit__(self, *args, capacity="64MiB", page=65536, **options):
        self.capacity = parse_size(capacity, "capacity")
        self.alignment = ALIGN
        self.paged = bool(page)
        self.granularity = parse_size(page, "page") if page else ALIGN
        if self.granularity & (self.granularity - 1) or self.granularity < ALIGN:
            raise ValueError(
                f"page={page!r} is not a power of two of {ALIGN} bytes or more, nor "
                "0 for a device whose ranges are memory throughout")
        self.extent = 4 * self.capacity
        self.streams = True
        # Each is a device of its own.
        self.resource = None
        self.fork_safe = False
        self.latency = float(options.get("latency", 0.0))
        self.fail_at = set()
        self.waits = []
        self.given = {}
        self.finished = {}
        self.tickets = {}

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            if (whole or not self.paged) and not SimulatedSource_take(self, nbytes):
                return NO_ROOM
            # Large ranges lie at multiples of huge pages on some systems only.
            ptr[0] = ndx_reserve_at(nbytes, False, self.granularity)
            if ptr[0] == NULL:
                if whole or not self.paged:
                    SimulatedSource_give(self, nbytes)
                return NO_RANGE
            if whole or not self.paged:
                memset(ptr[0], DIRT, nbytes)
            cookie[0] = <void *><size_t>(whole or not self.paged)
            return RESERVED

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        with gil:
            if cookie != NULL:
                SimulatedSource_give(self, nbytes)
            ndx_unreserve(ptr, nbytes)

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        with gil:
            if not SimulatedSource_take(self, nbytes):
                return NO_ROOM
        memset(ptr, DIRT, nbytes)
        return RESERVED

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        with gil:
            if self.broken:
                return False
            SimulatedSource_give(self, nbytes)
            return True

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        total[0] = self.capacity
        if idle != NULL:
            idle[0] = self.capacity - self.held
        return True

    cdef void *record(self, size_t stream) noexcept nogil:
        with gil:
            given = self.given.get(stream, 0)
            if given == self.finished.get(stream, 0):
                return NULL
            with cython.critical_section(self):
                self.last_event += 1
                event = self.last_event
            self.tickets[event] = (stream, given)
            return <void *><uintptr_t>event

    cdef bint is_done(self, void *event) noexcept nogil:
        with gil:
            stream, given = self.tickets[<uintptr_t>event]
            return self.finished.get(stream, 0) >= given

    cdef void wait(self, size_t stream, void *event) noexcept nogil:
        with gil:
            self.waits.append((stream, *self.tickets[<uintptr_t>event]))

    cdef void drop_event(self, void *event) noexcept nogil:
        with gil:
            del self.tickets[<uintptr_t>event]

    cdef void synchronize(self, size_t stream) noexcept nogil:
        with gil:
            with cython.critical_section(self):
                self.synchronizations += 1
            self.finished[stream] = self.given.get(stream, 0)

    @property
    def live_events(self) -> int:
        """Events that were recorded and not yet forgotten."""
        return len(self.tickets)

    def submit(self, stream: int, units: int = 1) -> None:
        """Give a stream work, which is not done until `finish` says so."""
        self.given[stream] = self.given.get(stream, 0) + units

    def finish(self, stream: int) -> None:
        """Mark all work that a stream was given as done."""
        self.finished[stream] = self.given.get(stream, 0)


cdef bint SimulatedSource_take(SimulatedSource self, size_t nbytes) noexcept:
    cdef size_t call
    with cython.critical_section(self):
        call = self.calls
        self.calls += 1
    if self.latency:
        time.sleep(self.latency)
    with cython.critical_section(self):
        if call in self.fail_at or nbytes > self.capacity - self.held:
            return False
        self.held += nbytes
    return True


cdef void SimulatedSource_give(SimulatedSource self, size_t nbytes) noexcept:
    with cython.critical_section(self):
        self.held -= nbytes


@options_class
class SimulatedOptions(PoolOptions):
    """The options of a device that is not there."""

    capacity: int | str = "64MiB"
    page: int | str = 65536
    latency: float = 0.0


cdef class SimulatedBackend(PooledBackend):
    """A pool over a device that is not there, to test what uses one.

    Parameters
    ----------
    capacity : int or str, default "64MiB"
        The memory of the device.
    page : int or str, default 65536
        What can be given back inside of a range; 0: only whole ranges can.
    latency : float, default 0
        Seconds that each request for memory takes.
    limit, pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.PooledBackend`.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("simulated", capacity="1MiB") as device:
    ...     x = ndx.ones(1000)
    >>> device.source.held
    65536
    """

    cdef readonly SimulatedSource source

    _options = SimulatedOptions
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[SimulatedKeywords]) -> None:
        options = self.take_options(given)
        self.name = "simulated"
        self.source = SimulatedSource(**options.own)
        self.setup(self.source, options)

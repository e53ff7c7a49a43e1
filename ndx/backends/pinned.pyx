"""Page-locked memory of the host, which GPUs read and write by themselves.

A copy between page-locked memory and a GPU goes on after the call that started it has
returned. A range that a copy still reads is not handed out again before the copy is
done: each copy records an event, which stays with the range when that is freed. The
pool grows rather than let the CPU wait; at its limit, the CPU waits.

The same memory can serve as a GPU's, where the GPU's own has no room
(`CudaHostBackend`).
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memset

from ndx._lib.unraisable cimport raise_later
from ndx.backends._pool.index cimport PoolBlock, PoolEvent
from ndx.backends._pool.store cimport CPU
from ndx.backends._pool.trim cimport pool_settle
from ndx.backends.base cimport Memory
from ndx.backends.cuda cimport CudaBackend, CudaSource, call, obtain_range, record_on
from ndx.backends.host cimport host_memory
from ndx.backends.pooled cimport PooledBackend

import threading

from ndx.backends._pool.options import OptionsSignature
from ndx.backends.cuda import GpuOptions

__all__ = ["CudaHostBackend", "HostAllocSource", "PinnedBackend", "PinnedSource"]

cdef enum:
    PAGE = 4096
    ALIGN = 64
    PORTABLE = 1                 # cudaHostAllocPortable: page-locked for every GPU
    MAPPED = 2                   # cudaHostAllocMapped: every GPU can address it

# Held while a range's events are waited for: of two threads that wait for one range,
# each must find its events.
cdef object finishing = threading.RLock()


@cython.no_gc_clear
cdef class HostAllocSource(CudaSource):
    """Page-locked memory of the host, at addresses that are the GPU's, too.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU by whose streams its use is ordered.
    """

    def __cinit__(self, *args, **options):
        self.granularity = PAGE
        # Unlike a GPU's own memory, page-locked memory is the machine's.
        self.budgeted = True
        self.gpu = 0
        self.shareable = False
        self.resource = "machine"

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return obtain_range(self, "hostAlloc", (nbytes, PORTABLE | MAPPED), ptr)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        with gil:
            call(self, "freeHost", <uintptr_t>ptr)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        return host_memory(idle, total)


@cython.no_gc_clear
cdef class PinnedSource(HostAllocSource):
    """Page-locked memory for the CPU, which waits for what GPUs still do with it."""

    def __cinit__(self, *args, **options):
        self.alignment = ALIGN
        self.host_accessible = True
        self.cpu_waits = True
        self.flying = {}

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        memset(ptr, 0, nbytes)

    cdef void *record(self, size_t stream) noexcept nogil:
        with gil:
            return <void *>PinnedSource_record(self, stream)

    cdef void wait(self, size_t stream, void *event) noexcept nogil:
        with gil:
            call(self, "eventSynchronize", <uintptr_t>event)

    cdef void drop_event(self, void *event) noexcept nogil:
        with gil:
            index = self.flying.pop(<uintptr_t>event, self.index)
            if index != self.index:
                call(self, "eventDestroy", <uintptr_t>event)
                return
        CudaSource.drop_event(self, event)

    cdef void synchronize(self, size_t stream) noexcept nogil:
        with gil:
            for event in list(self.flying):
                call(self, "eventSynchronize", event)


cdef uintptr_t PinnedSource_record(PinnedSource self, size_t stream) noexcept:
    """Record an event on the current GPU's stream; return 0 if its work is done."""
    cdef uintptr_t event
    try:
        index = self.runtime.getDevice()
    except BaseException as error:
        raise_later(error)
        index = self.index
    event = record_on(self, index, stream)
    if event:
        self.flying[event] = index
    return event


@cython.no_gc_clear
cdef class PinnedBackend(PooledBackend):
    """Page-locked memory of the host: copies to and from a GPU need no detour.

    Its arrays are the CPU's. Where they are copied to a GPU, the CPU need not wait:
    it does so if the array is used again, or its memory is needed, before the copy is
    done. Page-locked memory is taken from the whole machine: set a limit.

    Parameters
    ----------
    limit : int or str, optional
        Upper bound on the bytes held, such as ``"2GiB"`` or ``"25%"`` of the
        machine's memory; None for no bound.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.PooledBackend`.

    Raises
    ------
    DeviceError
        If CuPy, the driver or a GPU is missing.
    """

    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[PoolKeywords]) -> None:
        self.source = PinnedSource()
        self.name = "pinned"
        self.setup(self.source, self.take_options(given))

    def __dealloc__(self):
        # Idle memory may still be read by a GPU, and goes back to CUDA now. The pool is
        # NULL if a base class's constructor failed.
        if <PyObject *>self.pool != NULL:
            pool_settle(self.pool, True)

    cdef int allocate_on(self, size_t nbytes, bint zero, size_t stream,
                         Memory *out) except -1 nogil:
        # The CPU uses the range first, whatever stream is named.
        if self.pool.pending and not self.pool.would_hit(nbytes):
            pool_settle(self.pool, False)
        return PooledBackend.allocate_on(self, nbytes, zero, CPU, out)

    cdef void use_on(self, Memory *memory, size_t stream) noexcept nogil:
        """Note that work submitted to the current GPU's stream uses a range."""
        cdef PoolBlock *block = <PoolBlock *>memory.cookie
        cdef PoolEvent *event
        cdef void *done
        drop_done(self.source, block)
        event = <PoolEvent *>malloc(sizeof(PoolEvent))
        if event == NULL:
            # There is no memory for the event: the CPU waits.
            done = self.source.record(stream)
            if done != NULL:
                self.source.wait(CPU, done)
                self.source.drop_event(done)
            return
        event.event = self.source.record(stream)
        if event.event == NULL:
            free(event)
            return
        event.next = block.events
        block.events = event

    cdef int finish(self, Memory *memory) except -1 nogil:
        with gil, finishing:
            self.pool.finish_events(<PoolBlock *>memory.cookie, CPU)
        return 0


cdef void drop_done(PinnedSource source, PoolBlock *block) noexcept nogil:
    """Drop the events of a block in use whose work is done."""
    cdef PoolEvent **link = &block.events
    cdef PoolEvent *event
    while link[0] != NULL:
        event = link[0]
        if source.is_done(event.event):
            link[0] = event.next
            source.drop_event(event.event)
            free(event)
        else:
            link = &event.next


@cython.no_gc_clear
cdef class CudaHostBackend(CudaBackend):
    """Page-locked memory of the host as a GPU's: slower, but there is more of it.

    Its arrays are the GPU's, which reads and writes them across the bus. It serves
    what a GPU's own memory has no room for: ``ndx.use("cuda:0", limit="8GiB",
    fallback="host")``, and workspaces with ``spill="host"``.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    limit : int or str, optional
        Upper bound on the bytes held, such as ``"16GiB"`` or ``"25%"`` of the
        machine's memory; None for no bound.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.CudaBackend`.

    Raises
    ------
    DeviceError
        If CuPy, the driver or the GPU is missing.
    """

    _options = GpuOptions
    _source_type = HostAllocSource
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[GpuKeywords]) -> None:
        self.name = f"cudahost:{self.options.device}"

"""A pool of GPU memory, which it takes from CUDA through CuPy's runtime API.

Streams order the work of a GPU, which goes on after the call that submitted it has
returned. So a range that is freed while a kernel still reads it can be given out again
at once: to the same stream, because its work comes later, or to another stream, which
then waits for an event on the GPU. The CPU waits only before memory goes back to CUDA.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

import dataclasses
import functools
import importlib
import os
import sys
from threading import get_ident

from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx._lib.unraisable cimport report_ignored
from ndx.backends._pool.index cimport PoolBlock
from ndx.backends.base cimport ALLOCATED, SOURCE_FULL, Memory
from ndx.backends.mmap cimport file_source
from ndx.backends.pooled cimport PooledBackend
from ndx.backends.source cimport NO_ROOM, RAISED, RESERVED, Source

from ndx._lib.errors import DeviceError
from ndx.backends._capture_lock import refuse_here, try_waiting, wait_or_owe, waiting
from ndx.backends._cupy import check_device, is_forked
from ndx.backends._gpus import KIND, SOURCES
from ndx.backends._pool.options import OptionsSignature, PoolOptions, options_class

__all__ = [
    "CudaAsyncSource", "CudaBackend", "CudaFileSource", "CudaMmapBackend", "CudaSource",
    "begin_capture", "end_capture", "replaying_stream",
]

# thread -> name of the workspace of the graph that the thread captures
cdef dict capturing = {}
# handle of a stream being captured -> the stream that it stands for
cdef dict replaying = {}

# Looked up at import: at exit the module may be empty.
cdef object is_finalizing = sys.is_finalizing

cdef extern from "Python.h":
    void PyErr_SetObject(object kind, object value) noexcept

cdef enum:
    SEGMENT = 2097152            # 2 MiB: CUDA's own granularity
    ALIGN = 512
    PER_THREAD = 2               # cudaStreamPerThread
    WITHOUT_TIMING = 2           # cudaEventDisableTiming
    NO_MORE_MEMORY = 2           # cudaErrorMemoryAllocation
    NO_SUCH_HANDLE = 400         # cudaErrorInvalidResourceHandle
    NOT_READY = 600              # cudaErrorNotReady
    ANY_WAY = 4                  # cudaMemcpyDefault: by the addresses
    SPARE_EVENTS = 256


# no_gc_clear: the pool needs its source to give its memory back.
@cython.no_gc_clear
cdef class CudaSource(Source):
    """A GPU's memory, from which a pool takes large ranges.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    """

    def __cinit__(self, *args: Any, int device=0, **options: Any) -> None:
        if device < 0:
            raise ValueError(f"device={device} is not the number of a GPU")
        self.cuda = check_device(device).cuda
        self.runtime = self.cuda.runtime
        self.index = self.home = device
        self.granularity = SEGMENT
        self.alignment = ALIGN
        self.known = {}
        self.idle_events = []
        self.over = set()
        self.host_accessible = False
        # The process's limit is on the machine's memory.
        self.budgeted = False
        self.resource = f"cuda:{device}"
        self.gpu = KIND.first + device
        self.fork_safe = False
        self.streams = True
        self.shareable = True

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return obtain_range(self, "malloc", (nbytes,), ptr)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        with gil:
            call(self, "free", <uintptr_t>ptr)

    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil:
        with gil:
            call(self, "memsetAsync", <uintptr_t>ptr, 0, nbytes, stream)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        with gil:
            found = run_on(self, self.home, "memGetInfo", (), None)
            if found is None:
                return False
            if idle != NULL:
                idle[0] = found[0]
            total[0] = found[1]
            return True

    cdef void *record(self, size_t stream) noexcept nogil:
        with gil:
            return <void *>record_on(self, self.index, stream)

    cdef bint is_done(self, void *event) noexcept nogil:
        with gil:
            status = call(self, "eventQuery", <uintptr_t>event)
            # CuPy returns an error's number. An event with an error is not waited for.
            return status != NOT_READY

    cdef void wait(self, size_t stream, void *event) noexcept nogil:
        with gil:
            on_stream(self, "streamWaitEvent", stream, (stream, <uintptr_t>event, 0))

    cdef void drop_event(self, void *event) noexcept nogil:
        with gil:
            if len(self.idle_events) < SPARE_EVENTS:
                self.idle_events.append(<uintptr_t>event)
            else:
                call(self, "eventDestroy", <uintptr_t>event)

    cdef void synchronize(self, size_t stream) noexcept nogil:
        with gil:
            on_stream(self, "streamSynchronize", stream, (stream,))

    cdef bint is_over(self, size_t stream) noexcept nogil:
        with gil:
            if stream not in self.over:
                return False
            self.over.discard(stream)
            self.known.pop(stream, None)
            return True

    cdef size_t trim_pool(self) noexcept:
        """Give back the memory that CUDA's own pool keeps idle; return the bytes."""
        return 0

    def __dealloc__(self):
        for event in self.idle_events or ():
            call(self, "eventDestroy", event)


cdef int obtain_range(CudaSource self, str function, tuple args, void **ptr) noexcept:
    """Implement a source's `reserve` by a function of CUDA's runtime API."""
    raised = None
    try:
        with self.cuda.Device(self.home):
            ptr[0] = <void *><uintptr_t>getattr(self.runtime, function)(*args)
        return RESERVED
    except MemoryError:
        return NO_ROOM
    except BaseException as error:
        if getattr(error, "status", None) == NO_MORE_MEMORY:
            return NO_ROOM
        raised = error
    PyErr_SetObject(type(raised), raised)
    return RAISED


cdef uintptr_t record_on(CudaSource self, int index, size_t stream) noexcept:
    """Record an event on a stream; return 0 if that fails, after waiting for the GPU.

    Other libraries may destroy their streams at any time, while their work goes on.
    """
    cdef uintptr_t event = 0
    if is_finalizing() or is_forked():
        return 0
    try:
        with self.cuda.Device(index):
            # Idle events belong to one GPU.
            own = self.idle_events if index == self.index else None
            event = own.pop() if own else \
                self.runtime.eventCreateWithFlags(WITHOUT_TIMING)
            self.runtime.eventRecord(event, stream)
        self.over.discard(stream)
        return event
    except BaseException as error:
        note_failure(self, stream, error)
    wait_or_owe(functools.partial(wait_for_gpu, self, index))
    if event:
        call(self, "eventDestroy", event)
    return 0


def wait_for_gpu(CudaSource source not None, int index):
    """Wait until a GPU has finished its work; report errors, and don't raise them."""
    try:
        with source.cuda.Device(index):
            source.runtime.deviceSynchronize()
    except BaseException as error:
        report_ignored(source, error)


cdef void note_failure(CudaSource self, size_t stream, object error) noexcept:
    """Note that a stream was destroyed, if the error says so; else report the error."""
    if getattr(error, "status", None) == NO_SUCH_HANDLE:
        self.over.add(stream)
    else:
        report_ignored(self, error)


cdef bint on_stream(CudaSource self, str name, size_t stream, tuple args) noexcept:
    """Call a runtime function for a stream; return False if the stream has ended."""
    run_on(self, self.index, name, args, stream)
    return stream not in self.over


cdef object call(CudaSource self, str name, object a=None, object b=None,
                 object c=None, object d=None, object e=None):
    """Call a runtime function; report an error, don't raise it, and return None."""
    return run_on(self, self.index, name,
                  tuple([x for x in (a, b, c, d, e) if x is not None]), None)


cdef object run_on(CudaSource self, int index, str name, tuple args, object stream):
    """Like `call`, on a GPU. If `stream` has ended, wait for its work."""
    cdef PendingError pending
    if is_finalizing() or is_forked():
        # At exit the driver may be gone already, and frees all memory itself. In a
        # forked child the memory belongs to the parent.
        return None
    # Arrays are also freed while an exception is pending.
    pending = set_error_aside()
    result = None
    try:
        with self.cuda.Device(index):
            result = getattr(self.runtime, name)(*args)
        self.over.discard(stream)
    except BaseException as error:
        if stream is None:
            report_ignored(self, error)
        else:
            note_failure(self, stream, error)
            if stream in self.over:
                wait_or_owe(functools.partial(wait_for_gpu, self, index))
    put_error_back(pending)
    return result


def begin_capture(size_t captured, stream: Any, str name) -> None:
    """Note that this thread captures a graph.

    Until `end_capture`, it may take GPU memory from one workspace only. Pools never see
    the captured stream, because CUDA forbids to query it, or to wait for it.

    Parameters
    ----------
    captured : int
        The handle of the stream that is captured.
    stream : Stream
        CuPy's stream that will replay the graph, to which all memory belongs meanwhile.
    name : str
        The name of the workspace.
    """
    replaying[captured] = stream
    capturing[get_ident()] = name


def replaying_stream(stream: Any) -> Any:
    """Return the stream for which `stream` is captured; otherwise `stream` itself."""
    if not capturing:
        return stream
    if stream.ptr in replaying:
        return replaying[stream.ptr]
    if get_ident() in capturing:
        refuse_here("work of another stream, or of another GPU,")
    return stream


def end_capture(size_t captured) -> None:
    """Note that this thread has ended its capture."""
    capturing.pop(get_ident(), None)
    replaying.pop(captured, None)


cdef size_t stream_here(CudaSource source) except? 0:
    """Return CuPy's current stream of the GPU, for this thread."""
    stream = replaying_stream(source.cuda.get_current_stream(source.index))
    cdef size_t handle = stream.ptr
    if handle == PER_THREAD:
        raise RuntimeError(
            "per-thread default streams have one handle for all threads, so their "
            "memory can't be told apart; use a stream of CuPy's: with "
            "cupy.cuda.Stream(): ...")
    if handle not in source.known:
        # Keep the stream, so that no other one gets its handle while it owns memory.
        source.known[handle] = stream
    return handle


@options_class
class GpuOptions(PoolOptions):
    """The options of all pools of memory that a GPU addresses."""

    device: int = 0


@options_class
class CudaOptions(GpuOptions):
    """The options of a pool of a GPU's own memory."""

    source: str = "pool"
    prefetch: bool = False

    def __post_init__(self):
        GpuOptions.__post_init__(self)
        if self.source not in SOURCES:
            raise ValueError(
                f"source={self.source!r} is not a source of a GPU's memory; valid are "
                + ", ".join(map(repr, SOURCES)))
        if self.prefetch and self.source != "managed":
            raise ValueError(
                f"prefetch={self.prefetch!r} is for source='managed', whose pages move;"
                f" memory of source={self.source!r} stays where it is")
        if self.source == "async" and (
                self.pool not in ("split", "unpooled") or self.initial is not None):
            raise ValueError(
                f"source={self.source!r} is a pool of CUDA's: it takes no pool= and "
                "initial=, which are for pools of ndx")


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaBackend(PooledBackend):
    """A pool of a GPU's memory, on which CuPy computes.

    ``ndx.use("cuda")`` is ``ndx.use("cuda:0")``, the first GPU.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    limit : int or str, optional
        Upper bound on the bytes held from CUDA, such as ``"8GiB"`` or ``"60%"`` of the
        GPU's memory; None for no bound.
    source : {"pool", "async", "managed", "virtual"}, default "pool"
        Where the memory is from. ``"pool"``: the GPU (``cudaMalloc``), kept by a pool
        of ndx. ``"async"``: CUDA's own pool (``cudaMallocAsync``), which is not ordered
        by ndx's options: it takes no `pool` and `initial`, and `limit` bounds what
        arrays hold, not what CUDA keeps idle. ``"managed"``: memory whose pages the
        driver moves between the GPU and the host (``cudaMallocManaged``), so that
        arrays may be larger than the GPU's memory, and `limit` above it. ``"virtual"``:
        the GPU, by pages of 2 MiB in address space that is reserved once
        (``cuMemMap``): what is free goes back between arrays that live, and free memory
        grows at its end.
    prefetch : bool, default False
        With ``source="managed"``: the pages of each new array move to the GPU at once,
        on the current stream, and not one by one when a kernel needs them.
    pool, initial, idle_release, reserve_fraction, fallback, evict, cutoff : optional
        As for `ndx.backends.PooledBackend`; `fallback` and `evict` must be of the same
        GPU. For `ndx.use`, ``"host"`` is page-locked memory of the host, which it can
        address, ``"mmap"`` are files, where it can address those, and ``"cuda:1"`` is
        memory of another GPU, if it reaches that.

    Raises
    ------
    DeviceError
        If CuPy, the driver or the GPU is missing.

    See Also
    --------
    ndx.synchronize : wait until the GPU is done.
    """

    _options = CudaOptions
    _source_type = None          # derived classes: the source of the memory
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[CudaKeywords]) -> None:
        options = self.take_options(given)
        kind = self._source_type
        if kind is None:
            module, name = SOURCES[options.source]
            kind = getattr(importlib.import_module(f"ndx.backends.{module}"), name)
        self.source = kind(**options.own)
        if self.source.ordered:
            options = dataclasses.replace(options, pool="unpooled")
        self.name = f"cuda:{options.device}"
        self.lie_on(KIND.name, options.device)
        self.setup(self.source, options)

    cdef int allocate_on(self, size_t nbytes, bint zero, size_t stream,
                         Memory *out) except -1 nogil:
        cdef int status = PooledBackend.allocate_on(self, nbytes, zero, stream, out)
        cdef PoolBlock *block
        cdef size_t released
        if status == SOURCE_FULL and self.pool.source.ordered:
            # CUDA's own pool keeps free memory in pieces that may be too small.
            with gil:
                released = self.source.trim_pool()
            if released:
                status = PooledBackend.allocate_on(self, nbytes, zero, stream, out)
        block = <PoolBlock *>out.cookie
        if status == ALLOCATED and self.pool.source.ordered and \
                <size_t>block.segment.cookie != stream:
            # The current stream allocated it, for another one.
            self.hand_over(stream, <size_t>block.segment.cookie)
        if status == ALLOCATED and self.source.prefetches:
            with gil:
                call(self.source, "memPrefetchAsync", <uintptr_t>out.ptr, nbytes,
                     self.source.index, stream)
        return status

    cdef size_t trim_idle(self) noexcept nogil:
        cdef size_t released = PooledBackend.trim_idle(self)
        with gil:
            return released + self.source.trim_pool()

    def trim(self, target: Size = 0, idle: float | None = None) -> int:
        """Give idle memory back to CUDA, as `ndx.backends.PooledBackend.trim` does."""
        return PooledBackend.trim(self, target, idle) + self.source.trim_pool()

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        cdef size_t stream
        with gil:
            if capturing and get_ident() in capturing:
                raise DeviceError(
                    "memory outside of the graph's own can't be taken while a graph is "
                    "captured, since it could be used again while the graph still "
                    "writes to it: detach() what the function returned, after the call")
            stream = stream_here(self.source)
        return self.allocate_on(nbytes, zero, stream, out)

    cdef size_t current_stream(self) except? 0:
        return stream_here(self.source)

    cdef int check_arena(self, str name) except -1:
        if capturing and capturing.get(get_ident(), name) != name:
            refuse_here(
                f"an array in the workspace {name!r}, whose memory is used again,")
        return 0

    cdef void clear(self, char *ptr, size_t nbytes) noexcept nogil:
        with gil:
            call(self.source, "memsetAsync", <uintptr_t>ptr, 0, nbytes,
                 known_stream(self.source))

    cdef void copy(self, char *out, const char *ptr, size_t nbytes) noexcept nogil:
        with gil:
            call(self.source, "memcpyAsync", <uintptr_t>out, <uintptr_t>ptr, nbytes,
                 ANY_WAY, known_stream(self.source))

    cdef void hand_over(self, size_t stream, size_t before) noexcept nogil:
        cdef void *event = self.pool.record_on(before)
        if event != NULL:
            self.pool.source.wait(stream, event)
            self.pool.source.drop_event(event)

    cdef int finish(self, Memory *memory) except -1 nogil:
        """Wait, on the CPU, until all streams that were given a range are done."""
        self.pool.finish_uses(<PoolBlock *>memory.cookie)
        return 0

    def _receive(self, uintptr_t out, uintptr_t address, size_t nbytes):
        """Copy bytes that nothing uses to memory of this, and wait for that."""
        stream = stream_here(self.source)
        with self.source.cuda.Device(self.source.index):
            self.source.runtime.memcpyAsync(out, address, nbytes, ANY_WAY, stream)
            self.source.runtime.streamSynchronize(stream)

    def synchronize(self) -> None:
        """Wait until the GPU has finished all work submitted to it."""
        with self.source.cuda.Device(self.source.index), waiting():
            self.source.runtime.deviceSynchronize()
        PooledBackend.synchronize(self)

    def close_stream(self, size_t stream) -> None:
        """Wait for a stream, and release its memory to the others."""
        PooledBackend.close_stream(self, stream)
        self.source.known.pop(stream, None)


cdef size_t known_stream(CudaSource source) noexcept:
    """Return the current stream, which may be one that is captured."""
    try:
        return source.cuda.get_current_stream(source.index).ptr
    except BaseException as error:
        report_ignored(source, error)
    return 0


# ---- CUDA's own pool, where ranges are had and freed by streams ----------------------
# Each range of an array is one of CUDA's, which keeps what is free. Ours is a pool
# without memory of its own: it counts, and keeps the limit.

cdef enum:
    POOLS_SUPPORTED = 115        # cudaDevAttrMemoryPoolsSupported
    PINNED = 1                   # cudaMemAllocationTypePinned: what there is
    NO_HANDLES = 0               # cudaMemHandleTypeNone: for this process only
    ON_DEVICE = 1                # cudaMemLocationTypeDevice
    RELEASE_THRESHOLD = 4        # cudaMemPoolAttrReleaseThreshold
    RESERVED_NOW = 5             # cudaMemPoolAttrReservedMemCurrent


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaAsyncSource(CudaSource):
    """A pool of CUDA's, for this source alone.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    """

    def __cinit__(self, *args, **options):
        self.granularity = ALIGN
        self.ordered = True
        self.shareable = False
        if not self.runtime.deviceGetAttribute(POOLS_SUPPORTED, self.index):
            raise DeviceError(
                f"source='async' can't be had: the driver has no pools of memory for "
                f"'cuda:{self.index}' (cudaDevAttrMemoryPoolsSupported is 0), as some "
                "of virtual GPUs; source='pool', the default, needs none")
        with self.cuda.Device(self.index):
            self.cuda_pool = self.runtime.memPoolCreate(self.runtime.MemPoolProps(
                PINNED, NO_HANDLES, ON_DEVICE, self.index))
            # The pool keeps free memory until it is trimmed.
            self.runtime.memPoolSetAttribute(
                self.cuda_pool, RELEASE_THRESHOLD, (1 << 64) - 1)

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        with gil:
            return reserve_by_stream(self, nbytes, ptr, cookie)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        with gil:
            if not on_stream(self, "freeAsync", <uintptr_t>cookie,
                             (<uintptr_t>ptr, <uintptr_t>cookie)):
                # Freed on the default stream: all work that used the range is done by
                # then.
                call(self, "freeAsync", <uintptr_t>ptr, 0)

    cdef size_t trim_pool(self) noexcept:
        cdef size_t before = reserved_by(self)
        # Only memory that streams are done with goes back. A capture is not disturbed.
        with try_waiting() as may_wait:
            if may_wait:
                call(self, "deviceSynchronize")
            call(self, "memPoolTrimTo", self.cuda_pool, 0)
        return before - min(before, reserved_by(self))

    def __dealloc__(self):
        # NULL if a base class's constructor failed.
        if <PyObject *>self.cuda_pool != NULL and self.cuda_pool is not None:
            # CUDA gives memory still in use back when the work is done.
            call(self, "memPoolDestroy", self.cuda_pool)

    @property
    def reserved(self) -> int:
        """Bytes that CUDA's pool holds, idle ones included."""
        return reserved_by(self)


cdef int reserve_by_stream(CudaAsyncSource self, size_t nbytes, void **ptr,
                           void **cookie) noexcept:
    cdef uintptr_t stream = 0
    try:
        stream = stream_here(self)
    except BaseException:
        # The caller has had this exception already.
        pass
    cookie[0] = <void *>stream
    return obtain_range(
        self, "mallocFromPoolAsync", (nbytes, self.cuda_pool, stream), ptr)


cdef size_t reserved_by(CudaAsyncSource self) noexcept:
    found = call(self, "memPoolGetAttribute", self.cuda_pool, RESERVED_NOW)
    return 0 if found is None else found


# ---- Files that a GPU reads and writes by itself: the last resort --------------------
# Some systems let GPUs address all memory of a process, that of mapped files too. Each
# range is a file as of the backend ``mmap``, whose pages the system keeps in memory
# while they are used.

cdef enum:
    PAGEABLE_ACCESS = 88         # cudaDevAttrPageableMemoryAccess


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaFileSource(CudaSource):
    """Files without names in a directory, as a GPU's memory.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    directory : str or os.PathLike, optional
        A folder that exists. Default: as for `ndx.backends.MmapBackend`.
    """

    def __cinit__(self, *args: Any, directory: TextPath | None = None,
                  **options: Any) -> None:
        if not self.runtime.deviceGetAttribute(PAGEABLE_ACCESS, self.index):
            raise DeviceError(
                f"files can't be memory of 'cuda:{self.index}' on this system, which "
                "has no access to memory that CUDA did not give "
                "(cudaDevAttrPageableMemoryAccess is 0). Linux has that from 6.1.24 on "
                "with NVIDIA's open kernel modules from 535 on, and Grace Hopper "
                "always. Elsewhere spill='host' and fallback='host' give page-locked "
                "memory; or keep arrays in files until they are needed: with "
                "ndx.use('mmap'): kept = x.to_device('cpu')")
        self.shareable = False
        self.files = file_source(directory)
        self.place = self.files.place
        self.resource = self.files.resource

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        # No GPU can be told that the disk is full.
        return self.files.reserve(nbytes, True, ptr, cookie)

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        self.files.release(ptr, nbytes, cookie)

    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil:
        return self.files.info(idle, total)

    @property
    def directory(self) -> str:
        """The folder that the files are in."""
        return self.files.directory


@options_class
class CudaMmapOptions(GpuOptions):
    """The options of a pool of files that a GPU addresses."""

    directory: str | os.PathLike[str] | None = None


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class CudaMmapBackend(CudaBackend):
    """Files as a GPU's memory, where it can address them: there is most of it.

    Its arrays are the GPU's, which reads and writes them across the bus, and the system
    from and to the disk. It serves what neither the GPU's own memory nor page-locked
    memory of the host has room for: ``fallback="mmap"`` of either, and workspaces with
    ``spill="mmap"``.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    directory : str or os.PathLike, optional
        Where the files are: a folder on a fast disk with much room. Default: that of
        ``TMPDIR``, or ``/var/tmp``.
    limit : int or str, optional
        Upper bound on the bytes of disk that are held, such as ``"200GiB"`` or, of the
        whole file system, ``"60%"``; None for no bound.
    pool, initial, idle_release, reserve_fraction, fallback, cutoff : optional
        As for `ndx.backends.CudaBackend`.

    Raises
    ------
    DeviceError
        If CuPy, the driver or the GPU is missing; or if the GPU can't address memory
        that CUDA did not give, as on most systems.
    FileNotFoundError, NotADirectoryError, PermissionError
        If `directory` is no folder, or files can't be made in it.

    Notes
    -----
    Except on Grace Hopper, GPUs have no atomic operations on memory of files: what
    uses them (of CuPy's own functions those that scatter, such as
    ``cupyx.scatter_add`` and ``cupy.bincount``) must not write there. See "Unified
    Memory" in NVIDIA's CUDA C++ Programming Guide.
    """

    _options = CudaMmapOptions
    _source_type = CudaFileSource
    __signature__ = OptionsSignature()

    def __cinit__(self, *args, **given: Unpack[CudaMmapKeywords]) -> None:
        self.name = f"cudammap:{self.options.device}"

    @property
    def directory(self) -> str:
        """The folder that the files are in."""
        return (<CudaFileSource>self.source).directory

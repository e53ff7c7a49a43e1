"""CUDA's own pool of a GPU's memory, where ranges are had and freed by streams.

Each range of an array is one of CUDA's, which keeps what is free. Ours is a pool
without memory of its own: it counts, and keeps the limit.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from ndx.backends.cuda cimport CudaSource, call, obtain_range, on_stream, stream_here

from ndx._lib.errors import DeviceError

from ndx.backends._capture_lock import try_waiting

__all__ = ["CudaAsyncSource"]

cdef enum:
    ALIGN = 512
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

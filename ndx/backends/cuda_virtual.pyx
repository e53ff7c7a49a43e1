"""A GPU's memory in address space that is reserved once: pages come and go there.

The functions are those of CUDA's driver, "Virtual Memory Management", which CuPy does
not have. They need neither Python nor a current GPU.
"""

cimport cython
from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport calloc, free

import ctypes
import functools
import sys

from ndx._lib.pending_error cimport PendingError, put_error_back, set_error_aside
from ndx.backends._pool.store cimport ndx_lock_acquire, ndx_lock_release
from ndx.backends.cuda cimport CudaSource
from ndx.backends.source cimport NO_RANGE, NO_ROOM, RAISED, RESERVED

from ndx._lib.errors import DeviceError
from ndx.backends._capture_lock import wait_or_owe
from ndx.backends._cupy import driver, is_forked
from ndx.backends.cuda import wait_for_gpu

__all__ = ["CudaVirtualSource"]

# Looked up at import: at exit the module may be empty.
cdef object is_finalizing = sys.is_finalizing

cdef extern from "Python.h":
    void PyErr_SetObject(object kind, object value) noexcept

cdef enum:
    PINNED = 1                   # CU_MEM_ALLOCATION_TYPE_PINNED: what there is
    ON_DEVICE = 1                # CU_MEM_LOCATION_TYPE_DEVICE
    READ_WRITE = 3               # CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    LEAST = 0                    # CU_MEM_ALLOC_GRANULARITY_MINIMUM
    SUPPORTED = 102              # ..._ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    NO_MORE_MEMORY = 2           # CUDA_ERROR_OUT_OF_MEMORY


# no_gc_clear: the pool needs its source to give its memory back.
@cython.no_gc_clear
cdef class CudaVirtualSource(CudaSource):
    """Address space of a GPU, of which parts have memory, by pages of 2 MiB.

    Parameters
    ----------
    device : int, default 0
        The number of the GPU.
    """

    def __cinit__(self, *args: Any, **options: Any) -> None:
        cdef size_t granularity = 0, total = 0
        cdef int ordinal = 0, supported = 0
        find_functions(self)
        self.properties.type = PINNED
        self.properties.location.type = self.access.location.type = ON_DEVICE
        self.properties.location.id = self.access.location.id = self.index
        self.access.flags = READ_WRITE
        check((<Device>function_of("cuDeviceGet"))(&ordinal, self.index), "cuDeviceGet")
        check((<Attribute>function_of("cuDeviceGetAttribute"))(
            &supported, SUPPORTED, ordinal), "cuDeviceGetAttribute")
        if not supported:
            raise DeviceError(
                f"source='virtual' can't be had: 'cuda:{self.index}' maps no memory at "
                "addresses of ours (the attribute VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED "
                "is 0); source='pool', the default, needs none of that")
        check((<Granularity>function_of("cuMemGetAllocationGranularity"))(
            &granularity, &self.properties, LEAST), "cuMemGetAllocationGranularity")
        self.granularity = max(self.granularity, granularity)
        self.paged = True
        self.shareable = False
        self.info(NULL, &total)
        self.extent = -(-total // self.granularity) * self.granularity

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil:
        cdef uint64_t address = 0
        cdef Range *found = <Range *>calloc(1, sizeof(Range))
        cdef int status
        if found == NULL:
            return NO_RANGE
        found.mapped = <unsigned char *>calloc(nbytes // self.granularity, 1)
        status = NO_MORE_MEMORY if found.mapped == NULL else \
            self.driver.reserve(&address, nbytes, self.granularity, 0, 0)
        if status != 0:
            forget(found)
            return refuse(status, "cuMemAddressReserve", NO_RANGE)
        found.ptr = <char *><uintptr_t>address
        found.nbytes = nbytes
        ndx_lock_acquire(&self.lock)
        found.next = self.ranges
        self.ranges = found
        ndx_lock_release(&self.lock)
        if whole:
            status = self.commit(found.ptr, nbytes)
            if status != RESERVED:
                give_up(self, found)
                return status
        ptr[0] = found.ptr
        cookie[0] = found
        return RESERVED

    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil:
        cdef Range *found = <Range *>cookie
        cdef size_t page
        with gil:
            # At exit the driver may be gone already; a child has its parent's memory.
            if is_finalizing() or is_forked():
                return
            for page in range(nbytes // self.granularity):
                if found.mapped[page]:
                    give_up_later(self, found)
                    return
        give_up(self, found)

    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil:
        cdef Range *found = range_at(self, ptr)
        cdef size_t step = self.granularity
        cdef size_t first = (<char *>ptr - found.ptr) // step
        cdef size_t page
        cdef uint64_t handle = 0
        cdef int status = 0
        cdef const char *name = "cuMemCreate"
        for page in range(first, first + nbytes // step):
            # One that could not be unmapped has its memory still.
            if found.mapped[page]:
                continue
            status = self.driver.create(&handle, step, &self.properties, 0)
            if status != 0:
                break
            status = self.driver.map(
                <uintptr_t>found.ptr + page * step, step, 0, handle, 0)
            # The mapping keeps the memory.
            self.driver.drop(handle)
            if status != 0:
                name = "cuMemMap"
                break
            found.mapped[page] = 1
        if status == 0:
            status = self.driver.set_access(<uintptr_t>ptr, nbytes, &self.access, 1)
            name = "cuMemSetAccess"
        if status != 0:
            unmap(self, found, first, nbytes // step)
            return refuse(status, name, NO_ROOM)
        return RESERVED

    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil:
        # The pool purges what all streams are done with: nothing waits for them here.
        cdef Range *found = range_at(self, ptr)
        cdef size_t step = self.granularity
        return unmap(self, found, (<char *>ptr - found.ptr) // step, nbytes // step)

    def __dealloc__(self):
        cdef Range *found = self.ranges
        # Those that a forked child has of its parent, or that the end of the process
        # gives back.
        while found != NULL:
            self.ranges = found.next
            forget(found)
            found = self.ranges


cdef uintptr_t function_of(str name) except 0:
    """Return the address of one of the driver's functions."""
    try:
        return ctypes.cast(getattr(driver(), name), ctypes.c_void_p).value
    except AttributeError as error:
        raise DeviceError(
            f"source='virtual' can't be had: the driver is too old, and has no {name}; "
            "source='pool', the default, needs none of that") from error


cdef int find_functions(CudaVirtualSource self) except -1:
    self.driver.reserve = <Reserve>function_of("cuMemAddressReserve")
    self.driver.release = <OfRange>function_of("cuMemAddressFree")
    self.driver.create = <Create>function_of("cuMemCreate")
    self.driver.drop = <Release>function_of("cuMemRelease")
    self.driver.map = <Map>function_of("cuMemMap")
    self.driver.unmap = <OfRange>function_of("cuMemUnmap")
    self.driver.set_access = <SetAccess>function_of("cuMemSetAccess")
    return 0


cdef int check(int status, str name) except -1:
    if status != 0:
        raise DeviceError(
            f"source='virtual' can't be had: {name} of CUDA's driver failed, with "
            f"CUresult {status}")
    return 0


cdef int refuse(int status, const char *name, int refusal) noexcept nogil:
    """Return the status of a source for one of the driver; raise if it has none."""
    if status == NO_MORE_MEMORY:
        return refusal
    with gil:
        error = DeviceError(
            f"{(<bytes>name).decode()} of CUDA's driver failed, with CUresult {status}")
        PyErr_SetObject(type(error), error)
    return RAISED


cdef Range *range_at(CudaVirtualSource self, void *ptr) noexcept nogil:
    """Return the range in which an address lies."""
    cdef Range *found
    ndx_lock_acquire(&self.lock)
    found = self.ranges
    while not (found.ptr <= <char *>ptr < found.ptr + found.nbytes):
        found = found.next
    ndx_lock_release(&self.lock)
    return found


cdef bint unmap(CudaVirtualSource self, Range *found, size_t first,
                size_t count) noexcept nogil:
    """Take the memory of pages, each of which CUDA mapped; return if any is gone."""
    cdef size_t step = self.granularity
    cdef size_t page
    cdef bint gone = False
    for page in range(first, first + count):
        if found.mapped[page] and self.driver.unmap(
                <uintptr_t>found.ptr + page * step, step) == 0:
            found.mapped[page] = 0
            gone = True
    return gone


cdef void give_up(CudaVirtualSource self, Range *found) noexcept nogil:
    """Give back a range, with its memory, which no GPU uses."""
    cdef Range **link
    unmap(self, found, 0, found.nbytes // self.granularity)
    ndx_lock_acquire(&self.lock)
    link = &self.ranges
    while link[0] != found:
        link = &link[0].next
    link[0] = found.next
    ndx_lock_release(&self.lock)
    self.driver.release(<uintptr_t>found.ptr, found.nbytes)
    forget(found)


cdef void give_up_later(CudaVirtualSource self, Range *found) noexcept:
    """Give back a range when the GPU has done all of its work: now, if it may wait.

    Unlike cudaFree, to unmap does not wait.
    """
    cdef PendingError pending = set_error_aside()
    wait_or_owe(functools.partial(wait_and_give_up, self, <uintptr_t>found))
    put_error_back(pending)


def wait_and_give_up(CudaVirtualSource source not None, uintptr_t found):
    """Wait for the GPU, and give back a range."""
    wait_for_gpu(source, source.index)
    give_up(source, <Range *>found)


cdef void forget(Range *found) noexcept nogil:
    free(found.mapped)
    free(found)

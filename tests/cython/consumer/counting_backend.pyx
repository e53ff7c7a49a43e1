"""A backend in Cython: memory of the C library, with counts of live ranges."""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc

from ndx.backends.base cimport (
    ALIGNMENT, ALLOCATED, NO_MEMORY, Backend, Counters, Memory,
)

cdef extern from "ndx/lock.h" nogil:
    ctypedef int ndx_lock
    void ndx_lock_acquire(ndx_lock *lock)
    void ndx_lock_release(ndx_lock *lock)
    int ndx_at_fork(void (*before)() noexcept nogil, void (*after)() noexcept nogil)

# One lock for all instances. It is held during a fork, so that the child gets it free.
cdef ndx_lock lock


cdef void before_fork() noexcept nogil:
    ndx_lock_acquire(&lock)


cdef void after_fork() noexcept nogil:
    ndx_lock_release(&lock)


if ndx_at_fork(before_fork, after_fork) != 0:
    raise MemoryError("no memory to register the fork handlers")


cdef class CountingBackend(Backend):
    """Memory of the C library; each range is counted, and marked when it is released.

    Parameters
    ----------
    mark : int
        Byte that released ranges are filled with.
    limit : int or str, optional
        Upper bound on the bytes held.
    """

    cdef readonly int mark

    def __cinit__(self, *args, **options):
        self.name = "counting"

    def __init__(self, *, int mark=0xDD, limit=None):
        self.mark = mark

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        cdef Counters *counters = &self.counters
        cdef bint fits
        # Counted before the allocation, so that two threads can't exceed the limit.
        ndx_lock_acquire(&lock)
        fits = (self.limit_nbytes < 0
                or nbytes <= <size_t>self.limit_nbytes - counters.reserved)
        if fits:
            counters.reserved += nbytes
        ndx_lock_release(&lock)
        if not fits:
            return NO_MEMORY
        out.cookie = NULL
        if nbytes <= <size_t>-1 - ALIGNMENT:
            out.cookie = (calloc(1, nbytes + ALIGNMENT) if zero
                          else malloc(nbytes + ALIGNMENT))
        ndx_lock_acquire(&lock)
        if out.cookie == NULL:
            counters.reserved -= nbytes
        else:
            counters.allocations += 1
            counters.system_allocations += 1
            counters.live += 1
            counters.allocated += nbytes
            if counters.allocated > counters.peak_allocated:
                counters.peak_allocated = counters.allocated
            if counters.live > counters.peak_live:
                counters.peak_live = counters.live
            if counters.reserved > counters.peak_reserved:
                counters.peak_reserved = counters.reserved
        ndx_lock_release(&lock)
        if out.cookie == NULL:
            return NO_MEMORY
        out.ptr = <char *>((<uintptr_t>out.cookie + ALIGNMENT)
                           & ~<uintptr_t>(ALIGNMENT - 1))
        out.nbytes = nbytes
        return ALLOCATED

    cdef void release(self, Memory *memory) noexcept nogil:
        cdef size_t i
        for i in range(memory.nbytes):
            memory.ptr[i] = <char>self.mark
        free(memory.cookie)
        ndx_lock_acquire(&lock)
        self.counters.live -= 1
        self.counters.allocated -= memory.nbytes
        self.counters.reserved -= memory.nbytes
        self.counters.system_frees += 1
        ndx_lock_release(&lock)

    cdef void read_counters(self, Counters *out) noexcept nogil:
        ndx_lock_acquire(&lock)
        out[0] = self.counters
        ndx_lock_release(&lock)

"""Native memory of the process: aligned, with a cache of small ranges.

Ranges up to 64 KiB are kept when they are released, by size class, and handed out
again most recent first. Larger ones come from and go back to the C library, which
recycles them well up to 32 MiB.
"""

from libc.stdint cimport uintptr_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from ndx.backends.base cimport (
    ALIGNMENT, ALLOCATED, NO_MEMORY, Backend, Counters, Memory,
)

__all__ = ["HostBackend"]

cdef extern from "ndx/pages.h" nogil:
    size_t ndx_purge(char *start, char *end)

cdef extern from "ndx/poison.h" nogil:
    void ndx_poison(void *ptr, size_t nbytes)
    void ndx_unpoison(void *ptr, size_t nbytes)

cdef extern from "ndx/arithmetic.h" nogil:
    int ndx_highest_bit(size_t number)

cdef extern from "Python.h":
    Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    LARGEST_CACHED = 65536           # bytes of one cached range
    IDLE_MAX = 8388608               # bytes kept idle at most

# One for all host backends: its sections are short, and a fork needs to hold one.
cdef ndx_lock lock


cdef void before_fork() noexcept nogil:
    ndx_lock_acquire(&lock)


cdef void after_fork() noexcept nogil:
    ndx_lock_release(&lock)


if ndx_at_fork(before_fork, after_fork) != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")


cdef inline int size_class(size_t nbytes) noexcept nogil:
    """Return the class of a size: steps of 64 B to 1 KiB, then 8 a doubling."""
    cdef int doubling
    if nbytes <= 1024:
        return <int>((nbytes + 63) // 64)
    doubling = ndx_highest_bit(nbytes - 1) - 10
    return <int>(9 + 8 * doubling + ((nbytes - 1) >> (7 + doubling)))


cdef inline size_t class_nbytes(int cls) noexcept nogil:
    cdef int doubling
    if cls <= 16:
        return <size_t>cls * 64
    doubling = (cls - 17) // 8
    return (<size_t>(9 + (cls - 17) % 8)) << (7 + doubling)


cdef class HostBackend(Backend):
    """Native, 64-byte aligned memory of the process.

    Parameters
    ----------
    limit : int or str, optional
        Upper bound on the bytes held from the system, idle ones included;
        ``None`` for no bound. It is never exceeded, not by a byte.

    Examples
    --------
    >>> import ndx
    >>> with ndx.use("host", limit="1MiB"):
    ...     x = ndx.zeros(100)
    >>> x.backend.name
    'host'
    """

    def __cinit__(self, *args, **options):
        self.name = "host"

    def __init__(self, *, limit=None):
        pass

    def __dealloc__(self):
        self.trim_idle()

    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil:
        cdef int cls = -1
        cdef size_t rounded, room
        cdef Idle *idle
        if nbytes <= LARGEST_CACHED:
            cls = size_class(nbytes)
            rounded = class_nbytes(cls)
        elif nbytes > <size_t>PY_SSIZE_T_MAX - 2 * ALIGNMENT:
            return NO_MEMORY
        else:
            rounded = (nbytes + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1)
        ndx_lock_acquire(&lock)
        if cls >= 0 and self.idle[cls] != NULL:
            idle = self.idle[cls]
            self.idle[cls] = idle.next
            self.idle_bytes -= rounded
            self.count(nbytes)
            ndx_lock_release(&lock)
            out.ptr = <char *>idle
            out.nbytes = nbytes
            out.cookie = idle.cookie
            out.purged = 0
            ndx_unpoison(out.ptr, nbytes)
            if zero:
                memset(out.ptr, 0, nbytes)
            return ALLOCATED
        room = <size_t>self.limit_nbytes - self.counters.reserved
        if self.limit_nbytes >= 0 and rounded > room:
            if rounded > room + self.idle_bytes:
                ndx_lock_release(&lock)
                return NO_MEMORY
            self.flush()
        # Reserved before it is obtained, so that threads can't pass the limit together.
        self.counters.reserved += rounded
        ndx_lock_release(&lock)
        out.purged = 0
        out.cookie = (calloc(1, rounded + ALIGNMENT) if zero
                      else malloc(rounded + ALIGNMENT))
        ndx_lock_acquire(&lock)
        if out.cookie == NULL:
            self.counters.reserved -= rounded
            ndx_lock_release(&lock)
            return NO_MEMORY
        self.counters.system_allocations += 1
        if self.counters.reserved > self.counters.peak_reserved:
            self.counters.peak_reserved = self.counters.reserved
        self.count(nbytes)
        ndx_lock_release(&lock)
        out.ptr = <char *>((<uintptr_t>out.cookie + ALIGNMENT)
                           & ~<uintptr_t>(ALIGNMENT - 1))
        out.nbytes = nbytes
        return ALLOCATED

    cdef void count(self, size_t nbytes) noexcept nogil:
        self.counters.allocations += 1
        self.counters.live += 1
        self.counters.allocated += nbytes
        if self.counters.allocated > self.counters.peak_allocated:
            self.counters.peak_allocated = self.counters.allocated

    cdef void release(self, Memory *memory) noexcept nogil:
        cdef int cls
        cdef size_t rounded
        cdef Idle *idle
        if memory.nbytes <= LARGEST_CACHED:
            cls = size_class(memory.nbytes)
            rounded = class_nbytes(cls)
            idle = <Idle *>memory.ptr
            ndx_unpoison(idle, rounded)
            ndx_poison(memory.ptr + sizeof(Idle), rounded - sizeof(Idle))
            ndx_lock_acquire(&lock)
            if self.idle_bytes + rounded <= IDLE_MAX:
                idle.cookie = memory.cookie
                idle.next = self.idle[cls]
                self.idle[cls] = idle
                self.idle_bytes += rounded
                self.counters.live -= 1
                self.counters.allocated -= memory.nbytes
                ndx_lock_release(&lock)
                return
            ndx_lock_release(&lock)
        else:
            rounded = (memory.nbytes + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1)
        # Freed before it is counted as such, so that the limit holds at every moment.
        free(memory.cookie)
        ndx_lock_acquire(&lock)
        self.counters.live -= 1
        self.counters.allocated -= memory.nbytes
        self.counters.reserved -= rounded - memory.purged
        self.counters.system_frees += 1
        ndx_lock_release(&lock)

    cdef void purge(self, Memory *memory, size_t low, size_t high) noexcept nogil:
        cdef size_t purged
        # Small ranges are worth more whole, for the cache.
        if memory.nbytes <= LARGEST_CACHED or memory.purged:
            return
        purged = ndx_purge(memory.ptr, memory.ptr + low)
        purged += ndx_purge(memory.ptr + high, memory.ptr + memory.nbytes)
        memory.purged = purged
        ndx_lock_acquire(&lock)
        self.counters.reserved -= purged
        ndx_lock_release(&lock)

    cdef size_t flush(self) noexcept nogil:
        """Give all idle ranges back; the caller holds the lock."""
        cdef int cls
        cdef Idle *idle
        cdef size_t released = self.idle_bytes
        for cls in range(CLASSES):
            while self.idle[cls] != NULL:
                idle = self.idle[cls]
                self.idle[cls] = idle.next
                self.counters.reserved -= class_nbytes(cls)
                self.counters.system_frees += 1
                free(idle.cookie)
        self.idle_bytes = 0
        return released

    cdef size_t trim_idle(self) noexcept nogil:
        cdef size_t released
        ndx_lock_acquire(&lock)
        released = self.flush()
        ndx_lock_release(&lock)
        return released

    cdef void read_counters(self, Counters *out) noexcept nogil:
        ndx_lock_acquire(&lock)
        out[0] = self.counters
        ndx_lock_release(&lock)

    cdef void rewind_peak(self) noexcept nogil:
        ndx_lock_acquire(&lock)
        self.counters.peak_allocated = self.counters.allocated
        self.counters.peak_reserved = self.counters.reserved
        ndx_lock_release(&lock)

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx._lib.clock cimport ndx_milliseconds
from ndx._lib.guards cimport Damage

cdef enum:
    ALIGNMENT = 64           # of every range: a cache line
    CELL = 48                # bytes of an array that needs no range: see `take_cell`
    CELL_UNIT = 16           # what it takes of a limit is a multiple of this

cdef struct Memory:
    char *ptr                # first byte, aligned
    size_t nbytes            # bytes requested
    void *cookie             # private to the backend, for the release
    size_t purged            # bytes of it that `purge` gave back; 0 at first

# The result of `allocate`. All but the first are refusals, without an exception. The
# reason decides which measures may help (`backends._relief`), and is in the error.
cdef enum Status:
    ALLOCATED = 0
    NO_MEMORY = 1            # the system has no more; or the reason is not known
    SOURCE_FULL = 2          # the device or the disk has no more
    OWN_LIMIT = 3            # the backend's memory would exceed its limit
    PROCESS_LIMIT = 4        # the limit of ndx or of the process would be exceeded
    TOO_LARGE = 5            # the request alone would exceed a limit
    ARENA_FULL = 6           # the only segment of an `arena` has no room
    NOT_PASSED = 7           # an adaptor refused it
    DEVICE_LIMIT = 8         # all backends' memory on the device would exceed its limit
    TRY_AGAIN = 9            # memory that may do is on its way into the pool or out
    LOST = 10                # it is another process's, of which this one is a fork

cdef struct Counters:
    uint64_t allocations     # ranges handed out since the start
    uint64_t lent            # bytes of them
    uint64_t system_allocations
    uint64_t system_frees
    size_t allocated         # bytes requested and not yet released
    size_t peak_allocated
    size_t live              # ranges not yet released
    size_t peak_live
    size_t reserved          # bytes held from the system, idle ones included
    size_t peak_reserved
    uint64_t peak_time       # milliseconds: when `peak_allocated` was set; 0: unknown
    uint64_t peak_reserved_time

# What helps when memory is short: the steps of `_relief`, the cheapest first.
cdef enum Remedy:
    IDLE                     # idle memory of the backend's own pool
    OTHERS                   # that of closed workspaces, and of pools that compete
    EVICTION                 # arrays not used for longest, of backends with `evict`
    FALLBACK
    TRIM                     # idle memory of a backend without a pool
    COLLECTION
    CALLBACK
    NREMEDIES

# Requests that a backend refused at first. Threads count without the GIL, too.
cdef struct ReliefCounters:
    uint64_t refused
    uint64_t errors          # of these, that were never served
    uint64_t nanoseconds     # until they were served, or the error was raised
    uint64_t helped[<int>NREMEDIES]

# Whether a backend of a device was ever made.
cdef struct Devices:
    bint in_use

cdef Devices devices

cdef class Backend:
    cdef readonly str name
    cdef readonly str device
    cdef readonly bint host_accessible
    cdef readonly int device_number       # 0: the CPU
    cdef Py_ssize_t limit_nbytes          # -1: none
    cdef Counters counters
    cdef ReliefCounters relief_counters
    cdef void *cells                      # what `_blocks` knows of such arrays, or NULL
    cdef object evictor                   # of `_blocks`: moves arrays away; or None
    cdef object __weakref__

    cdef int lie_on(self, object kind, object index) except -1
    cdef int allocate(self, size_t nbytes, bint zero, Memory *out) except -1 nogil
    cdef void release(self, Memory *memory) noexcept nogil
    cdef void purge(self, Memory *memory, size_t low, size_t high) noexcept nogil
    cdef size_t trim_idle(self) noexcept nogil
    cdef int allocate_on(self, size_t nbytes, bint zero, size_t stream,
                         Memory *out) except -1 nogil
    cdef int allocate_from_fallback(self, size_t nbytes, bint zero, Memory *out,
                                    PyObject **server) except -1
    cdef void read_counters(self, Counters *out) noexcept nogil
    cdef void rewind_peak(self) noexcept nogil
    cdef void lift_peak(self, const Counters *peaks) noexcept nogil
    cdef void clear(self, char *ptr, size_t nbytes) noexcept nogil
    cdef void copy(self, char *out, const char *ptr, size_t nbytes) noexcept nogil
    cdef size_t current_stream(self) except? 0
    cdef int check_arena(self, str name) except -1
    cdef void use_on(self, Memory *memory, size_t stream) noexcept nogil
    cdef int finish(self, Memory *memory) except -1 nogil
    cdef void hand_over(self, size_t stream, size_t before) noexcept nogil
    cdef bint take_cell(self, size_t nbytes) noexcept nogil
    cdef void give_cell(self, char *ptr, size_t nbytes) noexcept nogil
    cdef int find_damage(self, Damage *out, int room) noexcept nogil
    cdef void tell_damage(self, const Damage *damage, int count) noexcept nogil

cdef inline void counters_lift(Counters *counters, size_t allocated, size_t live,
                               size_t reserved) noexcept nogil:
    """Raise the peaks to at least these values, of now."""
    if allocated > counters.peak_allocated:
        counters.peak_allocated = allocated
        counters.peak_time = ndx_milliseconds()
    if live > counters.peak_live:
        counters.peak_live = live
    if reserved > counters.peak_reserved:
        counters.peak_reserved = reserved
        counters.peak_reserved_time = ndx_milliseconds()

cdef inline void counters_add(Counters *counters, size_t nbytes) noexcept nogil:
    """Count a range that is handed out."""
    counters.allocations += 1
    counters.lent += nbytes
    counters.live += 1
    counters.allocated += nbytes
    counters_lift(counters, counters.allocated, counters.live, 0)

cdef inline void counters_remove(Counters *counters, size_t nbytes) noexcept nogil:
    """Count a range that is taken back."""
    counters.live -= 1
    counters.allocated -= nbytes

cdef inline void counters_restore(Counters *counters,
                                  const Counters *peaks) noexcept nogil:
    """Raise the peaks to at least those that were, with their times."""
    if peaks.peak_allocated >= counters.peak_allocated:
        counters.peak_allocated = peaks.peak_allocated
        counters.peak_time = peaks.peak_time
    counters.peak_live = max(counters.peak_live, peaks.peak_live)
    if peaks.peak_reserved >= counters.peak_reserved:
        counters.peak_reserved = peaks.peak_reserved
        counters.peak_reserved_time = peaks.peak_reserved_time

cdef inline void counters_rewind(Counters *counters) noexcept nogil:
    """Reset the peaks to the current values."""
    counters.peak_allocated = counters.allocated
    counters.peak_live = counters.live
    counters.peak_reserved = counters.reserved
    counters.peak_time = counters.peak_reserved_time = ndx_milliseconds()

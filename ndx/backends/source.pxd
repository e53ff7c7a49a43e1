cdef enum Reserved:
    RESERVED = 0
    NO_RANGE = 1                 # the system has no more; no exception is set
    NO_ROOM = 2                  # the device or the disk has no more; likewise
    RAISED = -1                  # a Python exception is set

# The source of a pool's memory: large ranges, and operations on parts of them.
cdef class Source:
    cdef readonly size_t granularity     # ranges and pages are multiples of it
    cdef readonly size_t alignment       # of every range, and of its parts
    cdef readonly size_t extent          # paged: address space to reserve at a time
    cdef readonly size_t commit_from     # `commit` is called for so many bytes or more
    cdef readonly bint paged             # only committed parts of a range have memory
    cdef readonly bint hidden            # tools see it only where `show` was called
    cdef readonly bint zeroed            # newly committed memory is zero
    cdef readonly bint ordered           # `release` is ordered on the stream `cookie`
    cdef readonly bint streams           # work on memory is ordered by streams
    cdef readonly bint cpu_waits         # the CPU uses the ranges, and waits for events
    cdef readonly bint host_accessible   # the CPU can read and write it
    cdef readonly bint fork_safe         # a forked child may continue to use it
    cdef readonly bint unattended        # `purge` and `release` run no Python, ever
    cdef readonly bint budgeted          # it counts towards the process's limit
    cdef readonly int gpu                # GPU whose limit counts it, from 1; 0: none
    cdef readonly str place              # location of its memory, for messages; or None
    cdef readonly object resource        # sources with equal ones compete for memory
    cdef readonly size_t most            # bytes it can ever have; 0: as `info` reports

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil
    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil
    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil
    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil
    cdef void offer(self, void *ptr, size_t nbytes) noexcept nogil
    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil
    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil
    cdef void *record(self, size_t stream) noexcept nogil
    cdef bint is_done(self, void *event) noexcept nogil
    cdef void wait(self, size_t stream, void *event) noexcept nogil
    cdef void drop_event(self, void *event) noexcept nogil
    cdef void synchronize(self, size_t stream) noexcept nogil
    cdef bint is_over(self, size_t stream) noexcept nogil
    cdef int show(self, void *ptr, size_t nbytes) noexcept nogil

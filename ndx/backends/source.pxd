cdef enum Reserved:
    RESERVED = 0
    NO_RANGE = 1                 # the system has no more; no exception is set
    NO_ROOM = 2                  # the device or the disk has no more; likewise
    RAISED = -1                  # a Python exception is set

# Where a pool's memory comes from: large ranges, and what may be done inside them.
cdef class Source:
    cdef readonly size_t granularity     # ranges and pages come in multiples of it
    cdef readonly size_t alignment       # of every range, and of what is cut from it
    cdef readonly size_t extent          # paged: address space to reserve at a time
    cdef readonly size_t commit_from     # `commit` is called for so many bytes or more
    cdef readonly bint paged             # a range has no memory but what is committed
    cdef readonly bint zeroed            # memory that was just committed is zero
    cdef readonly bint ordered           # `release` is work of the stream `cookie`, too
    cdef readonly bint streams           # work on memory is ordered by streams
    cdef readonly bint cpu_waits         # its ranges are the CPU's, which waits itself
    cdef readonly bint host_accessible   # the CPU can read and write it
    cdef readonly bint fork_safe         # a forked child may go on using it
    cdef readonly bint budgeted          # the limit of the process counts it
    cdef readonly int gpu                # whose limit counts it, from 1; 0: none
    cdef readonly str place              # where its memory is, for messages; or None
    cdef readonly object resource        # what sources with an equal one compete for
    cdef readonly size_t most            # bytes it can ever have; 0: as `info` says

    cdef int reserve(self, size_t nbytes, bint whole, void **ptr,
                     void **cookie) noexcept nogil
    cdef void release(self, void *ptr, size_t nbytes, void *cookie) noexcept nogil
    cdef int commit(self, void *ptr, size_t nbytes) noexcept nogil
    cdef bint purge(self, void *ptr, size_t nbytes) noexcept nogil
    cdef void clear(self, void *ptr, size_t nbytes, size_t stream) noexcept nogil
    cdef bint info(self, size_t *idle, size_t *total) noexcept nogil
    cdef void *record(self, size_t stream) noexcept nogil
    cdef bint is_done(self, void *event) noexcept nogil
    cdef void wait(self, size_t stream, void *event) noexcept nogil
    cdef void drop_event(self, void *event) noexcept nogil
    cdef void synchronize(self, size_t stream) noexcept nogil
    cdef bint is_over(self, size_t stream) noexcept nogil

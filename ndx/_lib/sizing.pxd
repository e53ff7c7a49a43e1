cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)
    size_t ndx_round_down(size_t nbytes, size_t step)

cdef enum:
    LINE = 64                            # bytes of a cache line: the unit of arenas

cdef enum Learn:
    LEARN_NONE
    LEARN_FIRST
    LEARN_OVER_TIME
    LEARN_LIVENESS

# A size, as given or learned; shared by all slots of a ring.
cdef class Sizing:
    cdef readonly size_t wanted          # bytes, rounded; 0: not yet known
    cdef readonly size_t changes         # how often it was chosen again
    cdef readonly size_t observed        # largest need of a cycle that counts
    cdef readonly size_t cycles          # number of observed cycles
    cdef readonly size_t minimum
    cdef readonly size_t maximum         # 0: unlimited
    cdef readonly size_t initial
    cdef size_t unit                     # `wanted` is a multiple of it
    cdef size_t window                   # number of last cycles that count; 0: all
    cdef size_t *needs                   # of the last cycles, in a circle
    cdef readonly size_t learn_cycles
    cdef readonly double overallocation
    cdef readonly Learn learn
    cdef readonly bint grows
    cdef readonly bint provisional       # `wanted` was requested, not learned

    cpdef void observe(self, size_t nbytes) noexcept
    cdef size_t most(self, size_t nbytes) noexcept
    cdef void settle(self) noexcept
    cdef size_t enough(self) noexcept
    cdef void choose(self) noexcept
    cdef void reserve(self, size_t nbytes) noexcept
    cdef void forget(self) noexcept

cdef enum Learn:
    LEARN_NONE
    LEARN_FIRST
    LEARN_OVER_TIME
    LEARN_LIVENESS

# How large an arena (each slot of a ring) is to be; shared by the slots.
cdef class Sizing:
    cdef readonly size_t wanted          # bytes, rounded; 0: not yet known
    cdef readonly size_t observed        # the most that a cycle needed
    cdef readonly size_t cycles          # observed ones
    cdef readonly size_t minimum
    cdef readonly size_t maximum         # 0: unlimited
    cdef readonly size_t initial
    cdef readonly size_t learn_cycles
    cdef readonly double overallocation
    cdef readonly Learn learn
    cdef readonly bint grows
    cdef readonly bint provisional       # `wanted` was asked for, not learned

    cdef void observe(self, size_t nbytes) noexcept
    cdef void settle(self) noexcept
    cdef void choose(self) noexcept
    cdef void reserve(self, size_t nbytes) noexcept
    cdef void forget(self) noexcept

cdef object full_error(str name, size_t nbytes, size_t taken, size_t size,
                       str backend)

cdef inline size_t line_of(size_t offset) noexcept nogil:
    """Return where the line of 64 bytes starts that a byte is in."""
    return offset & ~<size_t>63

cdef inline size_t rounded(size_t nbytes) noexcept nogil:
    """Return a number of bytes as whole lines of 64, the unit of arenas.

    Sizes are signed elsewhere, so that it can't overflow.
    """
    return (nbytes + 63) & ~<size_t>63

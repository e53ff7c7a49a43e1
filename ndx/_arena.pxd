from ndx._memory cimport Block, BlockOwner, Clock
from ndx.backends.base cimport Backend, Memory

# A stretch of the arena that this cycle may use: offsets, the first one moves.
cdef struct Gap:
    size_t cursor
    size_t end

cdef class Arena(BlockOwner):
    cdef readonly Clock clock
    cdef readonly Backend backend
    cdef readonly size_t size            # bytes; 0: not yet known
    cdef readonly size_t offset          # end of what this cycle has used
    cdef readonly size_t cycle_bytes     # asked for in this cycle, rounded
    cdef readonly size_t last_cycle_bytes
    cdef readonly size_t max_cycle_bytes
    cdef readonly size_t cycles          # finished ones
    cdef readonly size_t spilled_count   # of this cycle, or of the last when closed
    cdef readonly size_t spilled_bytes
    cdef readonly size_t total_spills
    cdef readonly double overallocation
    cdef readonly bint learn_first
    cdef readonly bint spill_fails
    cdef Memory chunk
    cdef Gap *gaps
    cdef Py_ssize_t ngaps
    cdef Py_ssize_t capacity             # of `gaps`
    cdef Py_ssize_t first_gap            # none before it has room
    cdef Py_ssize_t retained_count
    cdef Block live                      # heads of circular lists: blocks of this
    cdef Block retained                  # cycle; ranges of past ones still in use

    cdef Block *allocate(self, size_t nbytes, bint zero) except NULL
    cdef int adopt(self, Block *block) except -1
    cdef int begin(self) except -1
    cdef int resize(self, size_t size) except -1
    cdef int reserve_gaps(self, Py_ssize_t needed) except -1
    cdef void find_gaps(self) noexcept
    cdef Py_ssize_t retained_ranges(self, Block *block, Py_ssize_t count) noexcept
    cdef void poison(self, Block *block) noexcept
    cdef int spill(self, Block *block, bint zero) except -1
    cdef object full_error(self, size_t nbytes)
    cdef int end(self) except -1

from libc.stdint cimport uint64_t

from ndx._arenas.arena cimport Arena

# The granules of a chunk that are in use: one bit each.
cdef struct Bitmap:
    uint64_t *words
    size_t nbits
    size_t capacity          # words
    size_t granule           # bytes per bit

cdef enum:
    TRACES = 2               # cycles that one plan satisfies

# One allocation of a cycle: its size, its offset, and its lifetime in each cycle of the
# plan. The time counts births and deaths; NEVER: not born in that cycle.
cdef struct Life:
    size_t nbytes
    size_t offset
    size_t birth[TRACES]
    size_t death[TRACES]

cdef class PlannedArena(Arena):
    cdef Bitmap taken
    cdef Life *plan
    cdef Py_ssize_t planned              # entries of the plan; 0: no plan yet
    cdef size_t height                   # bytes from the chunk's start that it covers
    cdef Life *trace                     # of this cycle
    cdef Py_ssize_t traced
    cdef Py_ssize_t capacity
    cdef size_t time                     # births and deaths in this cycle
    cdef size_t departed                 # allocations of this cycle off the plan
    cdef size_t plan_again               # first cycle that may make a new plan
    cdef size_t pause                    # cycles between two plans
    cdef bint lost                       # the trace of this cycle is incomplete

    cdef int record(self, size_t needed) noexcept
    cdef int make_plan(self) except -1
    cdef size_t join(self, Life **out, Py_ssize_t *count) except? 0

cdef enum:
    TRACES = 2               # cycles that a plan satisfies at once

# One allocation of a cycle: its size, its place, and when it lived in each of the
# cycles that the plan is for. Times count births and deaths; never born: NEVER.
cdef struct Life:
    size_t nbytes
    size_t offset
    size_t birth[TRACES]
    size_t death[TRACES]

cdef size_t NEVER
cdef size_t ANYWHERE         # as an offset: wherever there is room

cdef size_t plan_offsets(Life *lives, Py_ssize_t count, size_t *height) except? 0
cdef size_t peak_of(const Life *lives, Py_ssize_t count, int trace) except? 0

cdef enum:
    TRACES = 2               # cycles that one plan satisfies

# One allocation of a cycle: its size, its offset, and its lifetime in each cycle of the
# plan. The time counts births and deaths; NEVER: not born in that cycle.
cdef struct Life:
    size_t nbytes
    size_t offset
    size_t birth[TRACES]
    size_t death[TRACES]

cdef size_t NEVER
cdef size_t ANYWHERE         # as an offset: not planned, any free range will do

cdef size_t plan_offsets(Life *lives, Py_ssize_t count, size_t *height) except? 0
cdef size_t peak_of(const Life *lives, Py_ssize_t count, int trace) except? 0

from libc.stdint cimport int64_t, uint64_t

from ndx._array.pinning cimport Operands
from ndx._compute.passes.settings cimport Settings
from ndx._compute.tiles cimport Job
from ndx._lib.layout cimport MAXOPS, Walk

# Advice to the kernel: the first two for pages that are read, the last two for those
# that are written.
cdef enum Advice:
    READ_AHEAD
    DROP
    POPULATE                         # for both
    WRITE
    WRITE_AND_DROP

# One operand of a pass.
cdef struct Operand:
    char *data
    Py_ssize_t itemsize
    bint read
    bint written
    bint moving                      # not broadcast
    bint mapped
    bint shared                      # a shared mapping, unless one was frozen since
    uint64_t frozen                  # how many were then
    int fd
    int64_t shift                    # offset in the file minus address in memory

# A job that is computed tile by tile; filled in by `begin`.
cdef struct Pass:
    Job *job
    Operand ops[MAXOPS]
    bint streaming                   # pages are dropped after use
    bint asking                      # the kernel is asked to read ahead
    bint alone                       # the calling thread computes all tiles
    Py_ssize_t first                 # the first tile to be taken
    Py_ssize_t behind                # tiles that may still be in memory
    Py_ssize_t threads
    Py_ssize_t block
    Py_ssize_t total                 # bytes
    Py_ssize_t each                  # bytes of an element of the walk
    Py_ssize_t done                  # bytes; atomic
    Py_ssize_t reported              # bytes, of which the user's callback knows
    Py_ssize_t next                  # tile to be taken; atomic
    Py_ssize_t stop                  # not 0: take no more tiles; atomic

cdef bint may_pass(const Job *job) except -1
cdef bint begin(Pass *now, Job *job) except -1
cdef int go_through(Pass *now, str name) except -1
cdef bint run_pass(Job *job, str name) except -1
cdef void find_file(Operand *operand) noexcept nogil
cdef void advise_part(const Operand *operand, char *data, const Walk *walk, int op,
                      Advice advice) noexcept nogil
cdef int report(Settings now, Py_ssize_t done, Py_ssize_t total, str name) except -1

cdef bint cast_walk(Operands *held, const Walk *walk, int dtype, int into) except -1

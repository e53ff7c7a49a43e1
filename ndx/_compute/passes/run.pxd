from libc.stdint cimport int64_t, uint64_t

from ndx._array.pinning cimport Compute, Operands
from ndx._compute.passes.settings cimport Settings
from ndx._compute.passes.tiles cimport Grid
from ndx._lib.layout cimport MAXDIMS, MAXOPS, Walk

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
    Py_ssize_t steps[MAXDIMS]        # bytes from one tile to the next
    bint read
    bint written
    bint moving                      # not broadcast
    bint mapped
    bint shared                      # a shared mapping, unless one was frozen since
    uint64_t frozen                  # how many were then
    int fd
    int64_t shift                    # offset in the file minus address in memory

# An operation that is computed tile by tile; filled in by `begin`.
cdef struct Pass:
    const Operands *held
    Walk walk
    Grid grid
    Operand ops[MAXOPS]
    Compute compute
    void *arg
    bint single_threaded             # `compute` runs in the calling thread only
    bint streaming                   # pages are dropped after use
    bint asking                      # the kernel is asked to read ahead
    Py_ssize_t first                 # the first tile to be taken
    Py_ssize_t behind                # tiles that may still be in memory
    Py_ssize_t threads
    Py_ssize_t block
    Py_ssize_t total                 # bytes
    Py_ssize_t each                  # bytes of an element of the walk
    Py_ssize_t done                  # bytes; atomic
    Py_ssize_t next                  # tile to be taken; atomic
    Py_ssize_t stop                  # not 0: take no more tiles; atomic

cdef bint begin(Pass *job, const Operands *held, const Walk *walk,
                const Py_ssize_t *itemsizes, int reduced) except -1
cdef int run(Pass *job, str name) except -1
cdef bint run_pass(const Operands *held, const Walk *walk,
                   const Py_ssize_t *itemsizes, Compute function, void *arg,
                   str name, bint single_threaded) except -1
cdef int run_large(Operands *operands, const Walk *walk, const Py_ssize_t *itemsizes,
                   Compute function, void *arg, str name,
                   bint single_threaded) except -1
cdef void find_file(Operand *operand) noexcept nogil
cdef void advise_part(const Operand *operand, char *data, const Walk *walk, int op,
                      Advice advice) noexcept nogil
cdef int report(Settings now, Py_ssize_t done, Py_ssize_t total, str name) except -1

cdef bint cast_walk(const Operands *held, const Walk *walk, int dtype,
                    int into) except -1

from cpython.object cimport PyObject

from ndx._blocks.block cimport Block, BlockParent, Clock
from ndx.backends.base cimport Backend

cdef enum:
    GUARD = 64               # bytes after each block in debug mode
    MOST_TOLD = 8            # writes beyond the ends of blocks; others are counted

# A write beyond the end of a block, until it is reported.
cdef struct Damage:
    size_t nbytes            # of the block
    PyObject *origin         # of the block: str, strong; or NULL
    Py_ssize_t at            # first byte behind the end that was written to

cdef void set_guard(char *end) noexcept nogil
cdef void fill_dead(char *ptr, size_t nbytes) noexcept nogil
cdef int check_policies(str name, Backend backend, object config, object home) except -1

# The debug mode of an arena.
cdef class Watcher(BlockParent):
    cdef readonly Clock clock
    cdef readonly bint debug
    cdef bint guarded                    # guard patterns detect stray writes
    cdef Py_ssize_t damaged              # writes beyond the ends of blocks
    cdef Damage[MOST_TOLD] damage        # the first of them

    cdef int record_line(self, Block *block) except -1
    cdef void inspect(self, Block *block) noexcept
    cdef int raise_damage(self) except -1
    cdef void forget_damage(self) noexcept

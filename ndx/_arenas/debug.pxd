from ndx._blocks.block cimport Block, BlockParent, Clock
from ndx._lib.guards cimport Damage
from ndx.backends.base cimport Backend

cdef enum:
    MOST_TOLD = 8            # writes beyond the ends of blocks; others are counted

cdef void set_guard(char *end) noexcept nogil
cdef bint is_damaged(Block *block, Damage *out) noexcept
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

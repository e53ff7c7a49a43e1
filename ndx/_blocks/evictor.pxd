from ndx._blocks.block cimport Block, BlockParent
from ndx.backends.base cimport Backend, Memory

cdef class Evictor(BlockParent):
    cdef object home                 # weak reference to the backend
    cdef Backend place
    cdef Block at_home               # heads of rings; not used for longest first
    cdef Block away
    cdef size_t count                # blocks at home
    cdef size_t away_bytes
    cdef size_t evicted_count
    cdef size_t evicted_bytes
    cdef size_t returned_count
    cdef size_t returned_bytes
    cdef size_t uses                 # of blocks that are away, since the last swap
    cdef size_t unseen               # and since the last look
    cdef size_t admitted             # blocks since the last look
    cdef size_t patience             # uses until the next swap
    cdef bint regretted              # the last swap: its victim was used

    cdef Block *coldest(self, size_t *left, bint swaps) noexcept
    cdef size_t evict(self, size_t nbytes, bint swaps) except? -1
    cdef int bring_back(self, Block *block) except -1
    cdef bint may_swap(self, Block *block, size_t missing) noexcept
    cdef void look(self) noexcept
    cdef size_t bytes_at_home(self, size_t enough, bint unused) noexcept
    cdef Backend obtain(self, size_t nbytes, Memory *out)
    cdef bint copy_ahead(self, Block *block, const Memory *memory, Backend to,
                         bint leaves) noexcept
    cdef bint move(self, Block *block, const Memory *memory, Backend to, bint leaves,
                   unsigned int index) noexcept

from ndx._arenas.counts cimport CycleCounts
from ndx._arenas.debug cimport Watcher
from ndx._arenas.sizing cimport Sizing, ndx_round_up
from ndx._arenas.spill cimport Spill
from ndx._blocks.block cimport Block, BlockOwner
from ndx.backends.base cimport Backend, Memory

cdef enum:
    DEVICE_LINE = 256            # what CUDA's libraries expect, and copies best

cdef class Arena(Watcher):
    cdef readonly Backend backend
    cdef size_t line                     # its unit: all places are multiples of it
    cdef readonly Backend home           # that is asked for the chunk
    cdef Backend chunk_backend           # that served it: home, or its fallback
    cdef Spill spilling                  # serves what does not fit the arena
    cdef readonly Arena twin             # of a device's, on the host; None: it has none
    cdef readonly Sizing sizing
    cdef readonly size_t size            # bytes; 0: not yet known
    cdef readonly size_t offset          # end of what this cycle has used
    cdef CycleCounts counts
    cdef readonly bint escapes
    cdef readonly bint used              # it holds a cycle that has not been expired
    cdef bint spills_all
    cdef bint reuses                     # memory within a cycle: `vacate` is called
    cdef size_t ask_again                # for a chunk, in this cycle or later
    cdef size_t patience                 # cycles to wait after the next failure
    cdef Memory chunk
    cdef Py_ssize_t pinned_count
    cdef size_t stream                   # that last used it; of a device's
    cdef Block live                      # heads of circular lists: blocks of this
    cdef Block pinned                    # cycle; ranges of past ones still in use

    # The places within the chunk.
    cdef char *place(self, Block *block, size_t needed) noexcept
    cdef void vacate(self, Block *block) noexcept
    cdef int find_free(self) except -1
    cdef void observe(self) noexcept

    cdef Block *allocate(self, size_t nbytes, bint zero) except NULL
    cdef int adopt(self, Block *block) except -1
    cdef int prepare(self) except -1
    cdef void begin(self) noexcept
    cdef int finish(self) except -1
    cdef int expire(self, Backend outside) except -1
    cdef int move_out(self, Block **blocks, Py_ssize_t count,
                      Backend outside) except -1
    cdef int fit(self) except -1
    cdef int resize(self, size_t size) except -1
    cdef int destroy(self) except -1
    cdef int use_on(self, size_t stream) except -1

    cdef bint holds(self, Block *block) noexcept
    cdef int spill(self, Block *block, bint zero) except -1
    cdef int escape(self, Backend outside) except -1
    cdef void let_go(self, Block *block) noexcept
    cdef void keep(self, Block *block) noexcept
    cdef void clear(self, Block *block) noexcept
    cdef size_t extent(self, Block *block) noexcept
    cdef int get_chunk(self, size_t size) except -1
    cdef int drop_chunk(self) except -1

cdef inline size_t lines(Arena arena, size_t nbytes) noexcept:
    """Return a number of bytes as whole lines of an arena."""
    return ndx_round_up(nbytes, arena.line)

# An outgrown chunk, for as long as anything of it is in use.
cdef class RetiredChunk(BlockOwner):
    cdef Arena arena
    cdef Backend backend
    cdef Memory memory

cdef int set_spill_everything(bint on) except -1

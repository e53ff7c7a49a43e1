from ndx._arenas.counts cimport CycleCounts
from ndx._arenas.debug cimport Watcher
from ndx._blocks.block cimport Block, BlockParent
from ndx._lib.guards cimport Damage
from ndx._lib.sizing cimport Sizing, ndx_round_up
from ndx.backends.base cimport Backend, Memory

# The spill policy of an arena: the backends that serve what does not fit.
cdef class Spill:
    cdef Backend own                     # the arena's: while its size is not yet known
    cdef Backend backend                 # serves what does not fit
    cdef Backend beyond                  # fallback of `backend`; None: no fallback
    cdef bint fails                      # spills are refused

    cdef int check(self, Arena arena, size_t nbytes) except -1
    cdef Backend serve(self, size_t nbytes, bint zero, size_t size, Memory *out)

cdef enum:
    DEVICE_LINE = 256            # expected by CUDA's libraries, and fastest to copy

cdef class Arena(Watcher):
    cdef readonly Backend backend
    cdef unsigned char stripe            # whose lock guards the lists and the chunk
    cdef size_t line                     # unit: all offsets are multiples of it
    cdef readonly Backend home           # asked first for the chunk
    cdef Backend chunk_backend           # served the chunk: home, or its fallback
    cdef Spill spilling                  # serves what does not fit the arena
    cdef readonly Arena mirror             # mirror of a device's arena; None: no mirror
    cdef readonly Sizing sizing
    cdef readonly size_t size            # bytes; 0: not yet known
    cdef readonly size_t offset          # end of the part used in this cycle
    cdef CycleCounts counts
    cdef readonly bint escapes
    cdef readonly bint used              # it holds a cycle that has not been expired
    cdef bint spills_all
    cdef bint reuses                     # memory within a cycle: `vacate` is called
    cdef size_t ask_again                # cycle from which a chunk is requested again
    cdef size_t patience                 # cycles to wait after the next failure
    cdef Memory chunk
    cdef Py_ssize_t pinned_count
    cdef size_t stream                   # last used; only on a device
    cdef Block live                      # heads of circular lists: blocks of this
    cdef Block pinned                    # cycle; ranges of past ones still in use

    # Placement within the chunk.
    cdef char *place(self, Block *block, size_t needed) noexcept
    cdef void vacate(self, Block *block) noexcept
    cdef int find_free(self) except -1
    cdef void observe(self) noexcept

    cdef Block *allocate(self, size_t nbytes, bint zero) except NULL
    cdef int adopt(self, Block *block) except -1
    cdef int prepare(self) except -1
    cdef void begin(self) noexcept
    cdef int finish(self) except -1
    cdef bint has_no_pinned(self) noexcept
    cdef int find_damage(self, Damage *out, int room) noexcept
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
    """Round bytes up to whole lines of an arena."""
    return ndx_round_up(nbytes, arena.line)

# Owner of an outgrown chunk, while a part of it is in use.
cdef class RetiredChunk(BlockParent):
    cdef Arena arena
    cdef Backend backend
    cdef Memory memory

cdef void set_spill_everything(bint on) noexcept

# A range of a chunk: the offsets [low, high).
cdef struct Range:
    size_t low
    size_t high

cdef Py_ssize_t count_pinned(Arena arena) noexcept
cdef Py_ssize_t find_pinned(Arena arena, Range *out) noexcept
cdef size_t pinned_bytes(Arena arena) noexcept

cdef class BumpArena(Arena):
    cdef Range *gaps                     # of this cycle, lowest first; `low` advances
    cdef Py_ssize_t ngaps
    cdef Py_ssize_t capacity
    cdef Py_ssize_t first_gap            # none before it has room

cdef class FileArena(BumpArena):
    cdef bint is_read(self) noexcept

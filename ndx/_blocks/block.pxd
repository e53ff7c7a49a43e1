from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx._lib.free_threading cimport (
    ndx_down_count, ndx_down_int, ndx_get_byte, ndx_get_clock, ndx_get_int,
    ndx_get_time, ndx_store_byte, ndx_stripe_lock, ndx_stripe_unlock, ndx_up_count,
    ndx_up_int,
)
from ndx.backends.base cimport Backend, Memory

cdef extern from "ndx/internal/checked.h" nogil:
    void ndx_require(bint condition, const char *what)

# The clock of an arena. A block is valid while `now` equals its generation.
cdef class Clock:
    cdef uint64_t now
    cdef readonly str name
    cdef readonly bint open

# A range of bytes of a block that foreign code may read at any time.
cdef struct Export:
    Block *block
    size_t low                   # [low, high) within the block
    size_t high
    Export *next
    Export *prev

# Facts that few blocks have, kept out of the block.
cdef struct Note:
    PyObject *origin             # str, strong: the line that made it, if recorded
    uint64_t serial              # of its birth, in recordings; 0: not recorded
    size_t purged                # bytes of its own memory that were given back

# Which memory a block owns.
cdef enum Holding:
    NOT_OWN = 0                  # nothing: in an arena, somebody else's, or no bytes
    OWN_RANGE                    # a range, which `backend` takes back
    OWN_CELL                     # a few bytes, which `backend`, if any, has counted
    IN_OBJECTS                   # each of its arrays holds its elements in its object
    AWAY                         # a range elsewhere, to which its evictor moved it

# A range of memory that arrays share, and the backend that takes it back. The GIL
# guards all fields; without it, `refs`, `pins`, `now`, `generation` and `retired` are
# atomic, and the lock of the block's stripe guards the others. There is one for each
# array whose elements do not lie in the object itself: two lines of the cache, no more.
cdef struct Block:
    char *ptr
    size_t nbytes
    Py_ssize_t refs              # arrays and exports
    const uint64_t *now          # valid while now[0] == generation
    uint64_t generation
    Export *exports
    PyObject *backend            # strong; NULL: the block does not own its memory
    PyObject *parent             # BlockParent, strong, while it must be notified
    PyObject *clock              # Clock, strong; NULL: in no workspace
    PyObject *memory_owner       # any object, strong, that owns the memory
    Block *prev                  # in a list of the owner
    Block *next
    void *cookie                 # of its own memory
    Note *note                   # NULL: nothing
    int pins                     # operations in progress
    unsigned int index           # in its cycle's allocations; AWAY: uses since it left
    unsigned char holding        # see `Holding`
    unsigned char beyond         # bytes of that after its own, for guards
    unsigned char readonly
    unsigned char retired        # its scope has ended, but its range is still in use
    unsigned char kept           # it left its workspace, but its range is still there
    unsigned char stripe         # whose lock guards the block: its arena's
    unsigned short device        # number, see `_lib.device`; 0: the CPU

# Why a block's memory is released.
cdef enum Ending:
    DROPPED = 0                  # its reference count is 0
    SCOPE_END = 1
    CLOSED = 2
    ESCAPED = 3                  # it left its workspace
    MOVED = 4                    # to another backend, or back

# Base class of owners that lend ranges of a larger one; notified when a block ends.
cdef class BlockParent:
    cdef Backend owning_backend(self)
    cdef void block_freed(self, Block *block) noexcept
    cdef void block_idle(self, Block *block) noexcept
    cdef void admit(self, Block *block) noexcept
    cdef void block_wanted(self, Block *block) noexcept

ctypedef void (*NoteCycle)(BlockParent arena, bint begins) noexcept

cdef extern from "ndx/internal/free_threading.h" nogil:
    NoteCycle ndx_get_cycled "ndx_get"(NoteCycle *hook)
    void ndx_set_cycled "ndx_set"(NoteCycle *hook, NoteCycle value)

# Hooks of recordings, called for blocks with a serial, with no lock held.
cdef struct Observers:
    void (*ended)(uint64_t serial, int ending) noexcept
    void (*moved)(Block *block) noexcept
    void (*retired)(uint64_t serial) noexcept
    # Called at the scopes of all arenas during a recording; NULL otherwise.
    NoteCycle cycled

cdef Observers observers

cdef Block *block_new(Backend backend, size_t nbytes, bint zero,
                      size_t room) except NULL
cdef Block *block_of_cell(const char *elements, size_t nbytes,
                          PyObject *backend) except NULL
cdef bint block_watch(Block *block) noexcept
cdef bint block_is_watched(const Block *block) noexcept
cdef void block_admit(Block *block, Backend backend) noexcept
cdef void block_want(Block *block) noexcept
cdef void block_leave(Block *block, char *ptr, size_t nbytes) noexcept
cdef Block *block_wrap(char *ptr, size_t nbytes, bint readonly,
                       object memory_owner) except NULL
cdef Block *block_blank() except NULL
cdef Note *block_note(Block *block) noexcept
cdef Backend allocate_memory(Backend backend, Backend beyond, size_t nbytes, bint zero,
                             Memory *out)
cdef object block_part(const Block *block, PyObject *const *part)
cdef void block_give_up(Block *block) noexcept
cdef void block_set_free(Block *block) noexcept
cdef const uint64_t *block_hide(Block *block) noexcept
cdef void block_free(Block *block) noexcept
cdef int block_close(Block *block) except -1
cdef void block_purge(Block *block) noexcept
cdef void block_settle(Block *block) noexcept
cdef Export *export_new(Block *block, size_t low, size_t high) except NULL
cdef void export_free(Export *export) noexcept
cdef bint block_is_closed(Block *block) noexcept
cdef bint block_is_usable(Block *block) noexcept
cdef void block_set_device(Block *block, int device) noexcept
cdef bint block_is_read_by_device(Block *block) noexcept
cdef bint block_set_device_reads(Block *block) noexcept
cdef int block_wait_for_device(Block *block) except -1
cdef bint block_is_lost(Block *block) noexcept
cdef void block_lose(Block *block) noexcept

# Lists of blocks, each a ring with a head.

cdef inline void link(Block *head, Block *block) noexcept:
    """Append a block."""
    block.prev = head.prev
    block.next = head
    head.prev.next = block
    head.prev = block

cdef inline void unlink(Block *block) noexcept:
    block.prev.next = block.next
    block.next.prev = block.prev
    block.prev = block.next = NULL

cdef inline void mark_cycle(BlockParent arena, bint begins) noexcept:
    cdef NoteCycle hook = ndx_get_cycled(&observers.cycled)
    if hook != NULL:
        hook(arena, begins)

cdef inline uint64_t block_serial(const Block *block) noexcept:
    return 0 if block.note == NULL else block.note.serial

cdef inline void note_moved(Block *block) noexcept:
    """Tell recordings that a block has left its workspace; the caller holds it."""
    if block_serial(block):
        observers.moved(block)

cdef inline PyObject *block_origin(const Block *block) noexcept:
    return NULL if block.note == NULL else block.note.origin

cdef inline void block_lock(const Block *block) noexcept nogil:
    ndx_stripe_lock(block.stripe)

cdef inline void block_unlock(const Block *block) noexcept nogil:
    ndx_stripe_unlock(block.stripe)

cdef bint block_touch(Block *block) noexcept

cdef inline bint block_is_live(Block *block) noexcept:
    return ndx_get_time(ndx_get_clock(&block.now)) == ndx_get_time(&block.generation) \
        or block_touch(block)

cdef inline bint block_has_range(const Block *block) noexcept:
    return block.holding == OWN_RANGE or block.holding == AWAY

cdef inline Memory block_memory(const Block *block) noexcept:
    """Return a block's own memory, as its backend knows it; `ptr` is NULL without one.

    A block without may have a backend all the same: it has no bytes, or is a cell.
    """
    cdef Memory memory
    memory.ptr = block.ptr if block_has_range(block) else NULL
    memory.nbytes = block.nbytes + block.beyond
    memory.cookie = block.cookie
    memory.purged = 0 if block.note == NULL else block.note.purged
    return memory

cdef inline void block_take_memory(Block *block, const Memory *memory) noexcept:
    """Give a block memory of its own; the caller sets its backend."""
    ndx_require(memory.nbytes - block.nbytes < 256, "a range is of another size")
    block.ptr = memory.ptr
    block.cookie = memory.cookie
    block.beyond = <unsigned char>(memory.nbytes - block.nbytes)
    # Read without the lock by `own_block`.
    ndx_store_byte(&block.holding, OWN_RANGE)

cdef inline bint block_is_used(const Block *block) noexcept:
    """Whether an operation computes on a block, or foreign code may read it."""
    return ndx_get_int(&block.pins) > 0 or block.exports != NULL

cdef inline void block_incref(Block *block) noexcept:
    ndx_up_count(&block.refs)

cdef inline void block_decref(Block *block) noexcept:
    if ndx_down_count(&block.refs) == 0:
        block_free(block)

cdef inline void block_pin(Block *block) noexcept:
    ndx_up_int(&block.pins)

cdef inline void block_unpin(Block *block) noexcept:
    if ndx_down_int(&block.pins) == 0 and ndx_get_byte(&block.retired):
        block_settle(block)

from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from ndx.backends.base cimport Backend, Memory

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

# A range of memory that arrays share, and the backend that takes it back. The GIL
# guards all fields. There is one for each array whose elements do not lie in the object
# itself: two lines of the cache, no more.
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
    unsigned int index           # position in its cycle's allocations
    unsigned char holding        # see `Holding`
    unsigned char beyond         # bytes of that after its own, for guards
    unsigned char readonly
    unsigned char retired        # its scope has ended, but its range is still in use
    unsigned char kept           # it left its workspace, but its range is still there
    unsigned short device        # number, see `_lib.device`; 0: the CPU

# Why a block's memory is released.
cdef enum Ending:
    DROPPED = 0                  # its reference count is 0
    SCOPE_END = 1
    CLOSED = 2
    ESCAPED = 3                  # it left its workspace, and was moved

# Base class of owners that lend ranges of a larger one; notified when a block ends.
cdef class BlockParent:
    cdef Backend owning_backend(self)
    cdef void block_freed(self, Block *block) noexcept
    cdef void block_idle(self, Block *block) noexcept

# Hooks of recordings, called for blocks with a serial.
cdef struct Observers:
    void (*ended)(uint64_t serial, int ending) noexcept
    void (*moved)(Block *block) noexcept
    void (*retired)(Block *block) noexcept
    # Called at the scopes of all arenas during a recording; NULL otherwise.
    void (*cycled)(BlockParent arena, bint begins) noexcept

cdef Observers observers

cdef Block *block_new(Backend backend, size_t nbytes, bint zero,
                      size_t room) except NULL
cdef Block *block_of_cell(const char *elements, size_t nbytes,
                          PyObject *backend) except NULL
cdef void block_leave(Block *block, char *ptr, size_t nbytes) noexcept
cdef Block *block_wrap(char *ptr, size_t nbytes, bint readonly,
                       object memory_owner) except NULL
cdef Block *block_blank() except NULL
cdef void block_take_memory(Block *block, const Memory *memory) noexcept
cdef Memory block_memory(const Block *block) noexcept
cdef Note *block_note(Block *block) noexcept
cdef Backend allocate_memory(Backend backend, Backend beyond, size_t nbytes, bint zero,
                             Memory *out)
cdef void block_release_memory(Block *block) noexcept
cdef void block_set_free(Block *block) noexcept
cdef void block_free(Block *block) noexcept
cdef int block_close(Block *block) except -1
cdef void block_purge(Block *block) noexcept
cdef void block_unpin_slow(Block *block) noexcept
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

cdef inline void mark_cycle(BlockParent arena, bint begins) noexcept:
    if observers.cycled != NULL:
        observers.cycled(arena, begins)

cdef inline uint64_t block_serial(const Block *block) noexcept:
    return 0 if block.note == NULL else block.note.serial

cdef inline PyObject *block_origin(const Block *block) noexcept:
    return NULL if block.note == NULL else block.note.origin

cdef inline bint block_is_live(const Block *block) noexcept:
    return block.now[0] == block.generation

cdef inline void block_incref(Block *block) noexcept:
    block.refs += 1

cdef inline void block_decref(Block *block) noexcept:
    block.refs -= 1
    if block.refs == 0:
        block_free(block)

cdef inline void block_pin(Block *block) noexcept:
    block.pins += 1

cdef inline void block_unpin(Block *block) noexcept:
    block.pins -= 1
    if block.pins == 0 and block.retired:
        block_unpin_slow(block)

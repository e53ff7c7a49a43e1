"""Blocks: refcounted ranges of memory, each with the owner that takes it back.

A block is out of band (it never lies in the memory that it describes). It counts
the arrays that share it, the operations that compute on it, and the exports that
foreign code may read, so that no range is recycled while any of these is alive.

Everything here runs with the GIL, which guards all fields of all blocks. Without a GIL,
counts are atomic, and a lock guards the rest: that of the block's stripe, which is its
arena's. What is given back is taken out of the block with the lock, and given back
without it. A block whose last reference is gone waits for the lock in order to leave
its arena, which so meets blocks of no references, and lets them be.
"""

from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF, Py_XINCREF
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from ndx._lib.free_threading cimport (
    NDX_FREE_THREADED, ndx_get_clock, ndx_get_int, ndx_set_byte, ndx_set_clock,
    ndx_set_time, ndx_store_byte, ndx_swap_clock,
)
from ndx._lib.tracing cimport DOMAIN, trace, untrace
from ndx.backends._relief cimport relieve
from ndx.backends.base cimport ALIGNMENT, ALLOCATED, Backend, Memory, devices

from ndx._lib import caches


cdef extern from *:
    """
    #include "ndx/internal/free_threading.h"
    #ifdef Py_GIL_DISABLED
    ndx_stripe ndx_stripes[NDX_STRIPES + 1];
    NDX_OF_THREAD int ndx_shard_of_thread = 0;
    int ndx_choose_shard(void) {
        static int chosen = 0;
        ndx_shard_of_thread = (int)((unsigned)ndx_up(&chosen) % NDX_SHARDS) + 1;
        return ndx_shard_of_thread - 1;
    }
    static void ndx_lock_stripes(void) {
        int i;
        for (i = 0; i <= NDX_STRIPES; i++) { ndx_stripe_lock(i); }
    }
    static void ndx_unlock_stripes(void) {
        int i;
        for (i = 0; i <= NDX_STRIPES; i++) { ndx_stripe_unlock(i); }
    }
    static int ndx_guard_stripes(void) {
        return ndx_at_fork(ndx_lock_stripes, ndx_unlock_stripes);
    }
    #else
    static int ndx_guard_stripes(void) { return 0; }
    #endif
    """
    int ndx_guard_stripes() nogil

if ndx_guard_stripes() != 0:
    raise MemoryError("ndx: no memory to register its fork handlers")

# Clocks of blocks outside of workspaces, of closed blocks, and of blocks whose file
# can't be read.
cdef uint64_t always = 0
cdef uint64_t closed = 1
cdef uint64_t lost = 1

# Clock of blocks on a device. It never equals a generation, so the CPU's code refuses
# them at no extra cost. `block_is_usable` compares their own clock.
cdef uint64_t off_host = <uint64_t>-1

# Clock of blocks that are being moved: a check takes the slow path, which waits.
cdef uint64_t moving = <uint64_t>-1

# Clock of blocks that a device is still reading. It never equals a generation, so every
# check takes the slow path, which waits.
cdef uint64_t read_by_device = <uint64_t>-1

# Clock of blocks whose next use is to be noticed: it never equals a generation, so the
# check before that use takes the slow path (`block_touch`).
cdef uint64_t watched = <uint64_t>-1

# The domain in which `tracemalloc` sees arrays.
TRACEMALLOC_DOMAIN = DOMAIN

# Arrays without elements point here.
cdef char[128] nothing

cdef enum:
    IDLE = 4096                  # records of each kind that are kept for reuse

# Bytes from which on blocks are worth to be moved by an evictor.
cdef size_t evicted_from = 65536

# Records come from CPython's allocator of small objects, which gives memory back.
cdef Block *idle_blocks = NULL       # linked by `cookie`
cdef Export *idle_exports = NULL
cdef int idle_block_count = 0
cdef int idle_export_count = 0


cdef class Clock:
    """The time of a workspace (or of a slot of a ring): a counter of generations.

    It outlives the workspace, so that a stale array can say where it is from.
    """


cdef class BlockParent:
    """Base class of owners that lend ranges out of a larger one."""

    cdef Backend owning_backend(self):
        """Return the backend that the larger range is from."""
        return None

    cdef void block_freed(self, Block *block) noexcept:
        """Forget a block: it is closed, or its last reference is gone."""

    cdef void block_idle(self, Block *block) noexcept:
        """Take back the range of a retired block that nothing uses any more."""

    cdef void admit(self, Block *block) noexcept:
        """Take over a block in memory of its own, in order to move it if need be."""

    cdef void block_wanted(self, Block *block) noexcept:
        """Note that a block that was moved is about to be used; it may move back."""


cdef Backend allocate_memory(Backend backend, Backend beyond, size_t nbytes, bint zero,
                             Memory *out):
    """Get a range from a backend, its fallback or, if not None, one beyond these.

    Returns the backend that served, to which the range is to be released. Raises
    OutOfMemoryError, with nothing changed, if no way to free memory helps.
    """
    cdef int reason = backend.allocate(nbytes, zero, out)
    if reason != ALLOCATED:
        backend = relieve(backend, beyond, nbytes, zero, NULL, out, reason)
    # A device's memory is none of the process.
    if not backend.device_number:
        trace(out.ptr, nbytes)
    return backend


# The initial state of each block: one reference, live, no bytes.
cdef Block fresh
memset(&fresh, 0, sizeof(Block))
fresh.refs = 1
fresh.now = &always
fresh.ptr = <char *>((<size_t>nothing + 63) & ~<size_t>63)


cdef Block *block_blank() except NULL:
    """Return a block of one reference, that is live and owns nothing."""
    cdef Block *block = blank()
    if block == NULL:
        raise MemoryError("no memory for the description of a block")
    return block


cdef inline Block *blank() noexcept:
    global idle_blocks, idle_block_count
    cdef Block *block = idle_blocks
    # Without a GIL nothing is kept: CPython's allocator has a heap for each thread.
    if block != NULL:
        idle_blocks = <Block *>block.cookie
        idle_block_count -= 1
    else:
        block = <Block *>PyMem_Malloc(sizeof(Block))
        if block == NULL:
            return NULL
    # A copy is a few wide moves; `memset` of as much is a call.
    block[0] = fresh
    return block


cdef Block *block_new(Backend backend, size_t nbytes, bint zero,
                      size_t room) except NULL:
    """Return a block of the backend's memory.

    It has a range of its own, or is the one that all arrays of the backend share whose
    elements lie in their objects. That is for an array whose object has zeroed `room`
    for at most CELL bytes; the array ends with `block_leave`.
    """
    cdef Memory memory
    cdef Block *block
    cdef int reason
    # A borrowed reference: an owned one would be counted up and down for each array.
    cdef PyObject *server = <PyObject *>backend
    cdef Backend other
    # Without a GIL an array can't move its elements out of its object, as `own_block`
    # does, while another thread reads them.
    if not NDX_FREE_THREADED and 0 < nbytes <= room and backend.take_cell(nbytes):
        return shared_by_objects(backend, nbytes)
    if nbytes:
        reason = backend.allocate(nbytes, zero, &memory)
        if reason != ALLOCATED:
            other = relieve(backend, None, nbytes, zero, NULL, &memory, reason)
            server = <PyObject *>other
    block = blank()
    if block == NULL:
        if nbytes:
            (<Backend>server).release(&memory)
        raise MemoryError("no memory for the description of a block")
    if nbytes:
        block.nbytes = nbytes
        block_take_memory(block, &memory)
    Py_INCREF(<object>server)
    block.backend = server
    if (<Backend>server).device_number:
        block_set_device(block, (<Backend>server).device_number)
    elif nbytes:
        trace(memory.ptr, nbytes)
    if nbytes:
        block_admit(block, <Backend>server)
    return block


cdef void block_admit(Block *block, Backend backend) noexcept:
    """Let the evictor of a block's backend, if that has one, move the block."""
    if backend.evictor is not None and block.nbytes >= evicted_from:
        (<BlockParent>backend.evictor).admit(block)


def set_evicted_from(size_t nbytes):
    """Let evictors move blocks of so many bytes or more; for tests."""
    global evicted_from
    before, evicted_from = evicted_from, nbytes
    return before


cdef void block_want(Block *block) noexcept:
    """Tell a block's evictor, which has moved it, that it is about to be used."""
    evictor = block_part(block, &block.parent)
    if evictor is not None:
        (<BlockParent>evictor).block_wanted(block)


cdef inline const uint64_t *own_clock(const Block *block) noexcept:
    """Return the clock of a block outside of workspaces."""
    return &off_host if block.device else &always


cdef bint block_watch(Block *block) noexcept:
    """Watch a block for uses; False: it is watched, or in a workspace, lost, moving."""
    return ndx_swap_clock(&block.now, own_clock(block), &watched)


cdef bint block_is_watched(const Block *block) noexcept:
    """Whether a block was not used since `block_watch`."""
    return ndx_get_clock(&block.now) == &watched


cdef bint block_touch(Block *block) noexcept:
    """Note the use of a block that was watched; return whether the CPU may use it."""
    cdef bint touched = block_is_watched(block) and ndx_swap_clock(
        &block.now, &watched, own_clock(block))
    return touched and not block.device


cdef Block *shared_by_objects(Backend backend, size_t nbytes) except NULL:
    """Return the block of a backend's arrays whose elements lie in their objects.

    Such an element has an offset from address 0.
    """
    cdef Block *block = <Block *>backend.cells
    if block != NULL:
        block.refs += 1
        return block
    block = blank()
    if block == NULL:
        backend.give_cell(NULL, nbytes)
        raise MemoryError("no memory for the description of a block")
    block.ptr = NULL
    block.holding = IN_OBJECTS
    Py_INCREF(backend)
    block.backend = <PyObject *>backend
    backend.cells = block
    return block


cdef void block_leave(Block *block, char *ptr, size_t nbytes) noexcept:
    """Count an array whose elements lie in its object as gone."""
    (<Backend>block.backend).give_cell(ptr, nbytes)


cdef Block *block_of_cell(const char *elements, size_t nbytes,
                          PyObject *backend) except NULL:
    """Return a block over a copy of a few elements, which the backend has counted."""
    cdef char *start = <char *>PyMem_Malloc(nbytes + ALIGNMENT - 1)
    cdef Block *block
    if start == NULL:
        raise MemoryError("no memory for the elements of an array")
    try:
        block = block_blank()
    except BaseException:
        PyMem_Free(start)
        raise
    block.ptr = <char *>(<size_t>(start + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1))
    memcpy(block.ptr, elements, nbytes)
    block.nbytes = nbytes
    block.cookie = start
    block.holding = OWN_CELL
    if backend != NULL:
        Py_INCREF(<object>backend)
        block.backend = backend
    return block


cdef Block *block_wrap(char *ptr, size_t nbytes, bint readonly,
                       object memory_owner) except NULL:
    """Return a block over memory that `memory_owner` (None: the arrays) keeps alive."""
    cdef Block *block = block_blank()
    block.ptr = ptr
    block.nbytes = nbytes
    block.readonly = readonly
    if memory_owner is not None:
        Py_INCREF(memory_owner)
        block.memory_owner = <PyObject *>memory_owner
    return block


cdef void block_discard(Block *block) noexcept:
    global idle_blocks, idle_block_count
    cdef Note *note = block.note
    if note != NULL:
        # A str: nothing runs at its end.
        Py_XDECREF(note.origin)
        PyMem_Free(note)
    if not NDX_FREE_THREADED and idle_block_count < IDLE:
        block.cookie = idle_blocks
        idle_blocks = block
        idle_block_count += 1
    else:
        PyMem_Free(block)


cdef Note *block_note(Block *block) noexcept:
    """Return the note of a block, a blank one at first; NULL if there is no memory."""
    if block.note == NULL:
        block.note = <Note *>PyMem_Malloc(sizeof(Note))
        if block.note != NULL:
            memset(block.note, 0, sizeof(Note))
    return block.note


cdef int ending_of(Block *block) noexcept:
    """Return why the memory of a block goes back now."""
    if block_is_closed(block):
        return CLOSED
    return DROPPED if is_usable(block) else SCOPE_END


cdef object block_part(const Block *block, PyObject *const *part):
    """Return an object that a block has; None if it has none, or has lost it.

    Another thread may be closing the block, and give the object up.
    """
    cdef PyObject *found
    block_lock(block)
    found = part[0]
    Py_XINCREF(found)
    block_unlock(block)
    if found == NULL:
        return None
    held = <object>found
    Py_DECREF(held)
    return held


cdef void block_give_up(Block *block) noexcept:
    """Give back what a block holds; first release its lock, as that may run Python."""
    cdef Memory memory = block_memory(block)
    cdef PyObject *backend = block.backend
    cdef PyObject *memory_owner = block.memory_owner
    cdef char *ptr = block.ptr
    cdef unsigned char holding = block.holding
    cdef uint64_t serial = block_serial(block)
    cdef int ending = ending_of(block) if serial else DROPPED
    block.backend = NULL
    block.memory_owner = NULL
    block.ptr = NULL
    ndx_store_byte(&block.holding, NOT_OWN)
    if serial:
        block.note.serial = 0
    block_unlock(block)
    if backend != NULL:
        # Arrays without elements have a backend, but nothing of it.
        if memory.ptr != NULL:
            untrace(memory.ptr)
            (<Backend>backend).release(&memory)
        elif holding == OWN_CELL:
            (<Backend>backend).give_cell(ptr, memory.nbytes)
        elif holding == IN_OBJECTS:
            (<Backend>backend).cells = NULL
        Py_DECREF(<object>backend)
    if holding == OWN_CELL:
        PyMem_Free(memory.cookie)
    Py_XDECREF(memory_owner)
    if serial:
        observers.ended(serial, ending)


cdef void block_set_free(Block *block) noexcept:
    """Take a block out of its workspace: no scope reclaims the block from now on."""
    cdef PyObject *clock = block.clock
    ndx_set_time(&block.generation, 0)
    ndx_set_clock(&block.now, own_clock(block))
    block.clock = NULL
    Py_XDECREF(clock)


cdef void block_free(Block *block) noexcept:
    """Take back all that a block holds, once its last reference is gone."""
    cdef PyObject *parent
    cdef PyObject *clock
    cdef bint holds
    # Only of the last reference: while there are others, a thread may pin a block for a
    # moment, before it sees that the block has ended.
    ndx_require(ndx_get_int(&block.pins) == 0, "a pinned block is freed")
    block_lock(block)
    parent = block.parent
    clock = block.clock
    if parent != NULL:
        (<BlockParent>parent).block_freed(block)
        block.parent = NULL
    # Most blocks lie in their owner's memory, and have none of their own.
    holds = block.holding or block.backend != NULL or block.memory_owner != NULL \
        or block_serial(block)
    if holds:
        block_give_up(block)
    else:
        block_unlock(block)
    block_discard(block)
    Py_XDECREF(parent)
    Py_XDECREF(clock)


cdef const uint64_t *block_hide(Block *block) noexcept:
    """Let checks of a block wait for its lock, which is held; return its clock."""
    # A use, which has no lock, may replace the watching clock at this moment.
    cdef const uint64_t *now = ndx_get_clock(&block.now)
    ndx_set_clock(&block.now, &moving)
    return now


cdef bint block_is_closed(Block *block) noexcept:
    return ndx_get_clock(&block.now) == &closed


cdef void block_set_device(Block *block, int device) noexcept:
    """Mark a new, stamped block as memory of a device."""
    block.device = device
    block.now = &off_host
    devices.in_use = True


cdef bint block_is_usable(Block *block) noexcept:
    """Whether a block is neither stale nor closed, wherever its memory is."""
    cdef bint usable
    if block_is_live(block):
        return True
    # Another thread may move it: until it has arrived, its clock is another's.
    block_lock(block)
    usable = is_usable(block)
    block_unlock(block)
    return usable


cdef bint is_usable(Block *block) noexcept:
    """As `block_is_usable`, for a caller that has locked the block."""
    cdef const uint64_t *now = ndx_get_clock(&block.now)
    if now == &read_by_device or now == &watched:
        return True
    if now != &off_host:
        return block_is_live(block)
    return block.clock == NULL or (<Clock>block.clock).now == block.generation


cdef bint block_is_read_by_device(Block *block) noexcept:
    return ndx_get_clock(&block.now) == &read_by_device


cdef bint block_set_device_reads(Block *block) noexcept:
    """Mark a block as read by a device: its next use waits for that.

    Returns False, with nothing changed, if something may use the block without a check:
    foreign code, an operation in progress, or an arena that recycles it.
    """
    if block.now != &always and block.now != &read_by_device or block.exports != NULL \
            or block.pins > 0 or block.parent != NULL or block.memory_owner != NULL \
            or block.holding != OWN_RANGE:
        return False
    block.now = &read_by_device
    return True


cdef int block_wait_for_device(Block *block) except -1:
    """Wait until a block can be used by the CPU again."""
    cdef Memory memory = block_memory(block)
    (<Backend>block.backend).finish(&memory)
    # Another thread may have closed the block in the meantime.
    if block.now == &read_by_device:
        block.now = &always
    return 0


cdef bint block_is_lost(Block *block) noexcept:
    return ndx_get_clock(&block.now) == &lost


cdef void block_lose(Block *block) noexcept:
    """Mark a block as lost: its memory can't be read, and all use is refused."""
    block.now = &lost
    block.generation = 0


cdef int block_close(Block *block) except -1:
    """Free the memory of a live block now, for all arrays that share it."""
    cdef PyObject *parent
    cdef const uint64_t *now
    cdef bint computes
    block_lock(block)
    if block_is_closed(block):
        block_unlock(block)
        return 0
    # Hidden first: an operation that begins now waits, or is seen.
    now = block_hide(block)
    if block_is_used(block):
        computes = ndx_get_int(&block.pins) > 0
        ndx_set_clock(&block.now, now)
        block_unlock(block)
        raise BufferError(
            "the array can't be closed: "
            + ("an operation computes on it" if computes else
               "a NumPy view, a buffer or a DLPack capsule of it is alive")
            + "; close it when that is gone")
    ndx_set_time(&block.generation, 0)
    ndx_set_clock(&block.now, &closed)
    parent = block.parent
    if parent != NULL:
        (<BlockParent>parent).block_freed(block)
        block.parent = NULL
    block_give_up(block)
    Py_XDECREF(parent)
    return 0


cdef void block_settle(Block *block) noexcept:
    """Return a retired block's range to its owner, if its last use has just ended."""
    cdef PyObject *parent
    block_lock(block)
    if block_is_used(block) or not block.retired:
        block_unlock(block)
        return
    ndx_set_byte(&block.retired, False)
    parent = block.parent
    if parent != NULL:
        (<BlockParent>parent).block_idle(block)
        block.parent = NULL
    block_give_up(block)
    Py_XDECREF(parent)


cdef void block_purge(Block *block) noexcept:
    """Give back the part of a block's own memory that no export reads."""
    cdef Export *export = block.exports
    cdef size_t low = block.nbytes, high = 0
    cdef Memory memory
    # A block of no bytes has a backend, but no memory of it.
    if not block_has_range(block) or ndx_get_int(&block.pins) > 0 \
            or block_note(block) == NULL:
        return
    while export != NULL:
        if export.low < export.high:
            low = min(low, export.low)
            high = max(high, export.high)
        export = export.next
    if low >= high:
        # Exports without elements: of a range, no less than one byte can be kept.
        low, high = 0, 1
    memory = block_memory(block)
    (<Backend>block.backend).purge(&memory, low, high)
    block.note.purged = memory.purged


cdef Export *export_new(Block *block, size_t low, size_t high) except NULL:
    """Record that foreign code may read [low, high) of a block; hold the block."""
    global idle_exports, idle_export_count
    cdef Export *export = idle_exports
    if export != NULL:
        idle_exports = export.next
        idle_export_count -= 1
    else:
        export = <Export *>PyMem_Malloc(sizeof(Export))
        if export == NULL:
            raise MemoryError("no memory for the description of an export")
    export.block = block
    export.low = low
    export.high = high
    export.prev = NULL
    block_lock(block)
    export.next = block.exports
    if block.exports != NULL:
        block.exports.prev = export
    block.exports = export
    block_unlock(block)
    block_incref(block)
    return export


cdef void export_free(Export *export) noexcept:
    """Forget an export, which the foreign code no longer reads."""
    global idle_exports, idle_export_count
    cdef Block *block = export.block
    block_lock(block)
    if export.prev != NULL:
        export.prev.next = export.next
    else:
        block.exports = export.next
    if export.next != NULL:
        export.next.prev = export.prev
    block_unlock(block)
    if not NDX_FREE_THREADED and idle_export_count < IDLE:
        export.next = idle_exports
        idle_exports = export
        idle_export_count += 1
    else:
        PyMem_Free(export)
    block_settle(block)
    block_decref(block)


def records_kept():
    return idle_block_count + idle_export_count, \
        idle_block_count * sizeof(Block) + idle_export_count * sizeof(Export)


def drop_records():
    global idle_blocks, idle_exports, idle_block_count, idle_export_count
    cdef Block *block
    cdef Export *export
    while idle_blocks != NULL:
        block = idle_blocks
        idle_blocks = <Block *>block.cookie
        PyMem_Free(block)
    while idle_exports != NULL:
        export = idle_exports
        idle_exports = export.next
        PyMem_Free(export)
    idle_block_count = idle_export_count = 0


caches.register("blocks", 2 * IDLE, records_kept, drop_records)

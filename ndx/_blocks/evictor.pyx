"""Arrays that were not used for longest move to other memory, and back.

Uses cost nothing but for the first after a look: a block is *watched* by a clock that
never equals its generation, so that the check before its next use takes the slow path,
which sets the block's own clock again (`block_touch`). A block that is still watched at
the next look was not used: the CLOCK algorithm (Corbato, 1968), by which operating
systems choose pages.

A block moves as one that escapes from its workspace does: hidden, and only if nothing
uses it. Views follow, since they share the block. One that is away is used where it is.
One on a device is copied before it is hidden, since that runs Python and takes time,
and moves only if it was not used meanwhile.
It comes back at a use (`own_block`) if there is room; or, if it is used several times,
in exchange for blocks that were not used meanwhile. Where such a swap is regretted, as
in a loop over more arrays than there is memory for, the next ones wait for longer.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint64_t, uintptr_t
from libc.string cimport memcpy

from ndx._blocks.block cimport (
    AWAY, Block, BlockParent, block_decref, block_hide, block_is_used, block_is_watched,
    block_lock, block_memory, block_pin, block_set_free, block_take_memory,
    block_unlock, block_unpin, block_watch, link, note_moved, unlink,
)
from ndx._files.mapping cimport any_lost, is_lost
from ndx._lib.free_threading cimport (
    NDX_QUEUES, ndx_get_int, ndx_set_clock, ndx_store_byte, ndx_stripe_lock,
    ndx_stripe_unlock, ndx_up_if_any,
)
from ndx._lib.tracing cimport trace, untrace
from ndx._lib.unraisable cimport report_ignored
from ndx.backends.base cimport ALLOCATED, Backend, Memory

import weakref

from ndx._lib.errors import DeviceError
from ndx.backends import _pressure

__all__ = ["Evictor"]

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject *object) noexcept

cdef enum:
    USES = 3                     # of a block that is away, until others make room
    LOOK_SHIFT = 3               # a look at all blocks, once for an eighth as many uses
    MOST_PATIENCE = 4096

# In `Block.index`, beside the uses since it left: it left for another.
cdef unsigned int SWAPPED = 1 << 30


cdef inline bint is_movable(Evictor evictor, Block *block, bint leaves) noexcept:
    """Whether only arrays use a block, and it is not yet where it is to go."""
    return block.parent == <PyObject *>evictor and leaves != (block.holding == AWAY) \
        and (block.memory_owner == NULL or Py_REFCNT(block.memory_owner) == 1) \
        and (block.note == NULL or block.note.purged == 0) and not block_is_used(block)


cdef bint may_move(Evictor evictor, Block *block, bint leaves) noexcept:
    """Like `is_movable`, for a caller that has not locked the block."""
    cdef bint movable
    block_lock(block)
    movable = is_movable(evictor, block, leaves)
    block_unlock(block)
    return movable


# no_gc_clear: blocks, which the collector does not know, need the evictor.
@cython.no_gc_clear
@cython.binding(False)
cdef class Evictor(BlockParent):
    """Moves arrays of a backend to another one when memory is short.

    Parameters
    ----------
    backend : Backend
        Whose arrays; it keeps the evictor.
    place : Backend
        Where they go.
    """

    def __cinit__(self, Backend backend not None, Backend place not None):
        self.home = weakref.ref(backend)
        self.place = place
        self.at_home.next = self.at_home.prev = &self.at_home
        self.away.next = self.away.prev = &self.away
        self.patience = 1

    def stats(self):
        """Return what has moved, as a dict of bytes and counts."""
        cdef size_t away, evicted_count, evicted_bytes, returned_count, returned_bytes
        ndx_stripe_lock(NDX_QUEUES)
        away = self.away_bytes
        evicted_count, evicted_bytes = self.evicted_count, self.evicted_bytes
        returned_count, returned_bytes = self.returned_count, self.returned_bytes
        ndx_stripe_unlock(NDX_QUEUES)
        return {"away_bytes": away,
                "evicted_count": evicted_count,
                "evicted_bytes": evicted_bytes,
                "returned_count": returned_count,
                "returned_bytes": returned_bytes}

    def bytes_that_may_leave(self):
        """Return the bytes of blocks that no operation uses now."""
        cdef size_t found
        ndx_stripe_lock(NDX_QUEUES)
        found = self.bytes_at_home(<size_t>-1, False)
        ndx_stripe_unlock(NDX_QUEUES)
        return found

    def make_room(self, size_t nbytes):
        """Let blocks of so many bytes leave; return the bytes: 0 if fewer could."""
        cdef bint enough
        ndx_stripe_lock(NDX_QUEUES)
        enough = self.bytes_at_home(nbytes, False) >= nbytes
        ndx_stripe_unlock(NDX_QUEUES)
        if not enough or not _pressure.may_have_room(self.place, nbytes):
            return 0
        return self.evict(nbytes, False)

    cdef void admit(self, Block *block) noexcept:
        Py_INCREF(self)
        block.parent = <PyObject *>self
        ndx_stripe_lock(NDX_QUEUES)
        # What was used before memory is short is to be known then.
        self.admitted += 1
        if self.admitted > self.count >> LOOK_SHIFT:
            self.look()
        link(&self.at_home, block)
        self.count += 1
        ndx_stripe_unlock(NDX_QUEUES)

    cdef void block_freed(self, Block *block) noexcept:
        ndx_stripe_lock(NDX_QUEUES)
        unlink(block)
        if block.holding == AWAY:
            self.away_bytes -= block.nbytes
        else:
            self.count -= 1
        ndx_stripe_unlock(NDX_QUEUES)

    cdef void block_wanted(self, Block *block) noexcept:
        try:
            self.bring_back(block)
        except (MemoryError, DeviceError):
            # Then it stays where it is, as while a graph is captured.
            pass
        except BaseException as error:
            report_ignored(self, error)

    # -------------------------------------------------------------------- leaving

    cdef size_t evict(self, size_t nbytes, bint swaps) except? -1:
        """Let blocks of `nbytes` leave, the coldest first; return the bytes.

        A block that was used since the last look gets a second chance; if it is to be
        swapped for another, it stays.
        """
        cdef size_t left, evicted = 0
        cdef Memory memory
        cdef Backend server
        cdef Block *block
        ndx_stripe_lock(NDX_QUEUES)
        left = self.count * (1 if swaps else 2)
        ndx_stripe_unlock(NDX_QUEUES)
        while evicted < nbytes:
            block = self.coldest(&left, swaps)
            if block == NULL:
                break
            try:
                if not may_move(self, block, True):
                    continue
                server = self.obtain(block.nbytes, &memory)
                if server is None:
                    break
                if self.move(block, &memory, server, True, SWAPPED if swaps else 0):
                    evicted += block.nbytes
            finally:
                block_decref(block)
        return evicted

    cdef Backend obtain(self, size_t nbytes, Memory *out):
        """Get memory for a block that leaves; return its backend, None: there is none.

        The place may have a fallback. What it raises (in a forked child, say) is no
        error of the request for which blocks leave.
        """
        cdef PyObject *server = <PyObject *>self.place
        try:
            if self.place.allocate(nbytes, False, out) == ALLOCATED:
                return self.place
            if self.place.allocate_from_fallback(
                    nbytes, False, out, &server) == ALLOCATED:
                return <Backend>server
        except Exception:
            pass
        return None

    cdef Block *coldest(self, size_t *left, bint swaps) noexcept:
        """Return a block that was not used since the last look, with a reference.

        NULL: there is none among the next `left` blocks.
        """
        cdef Block *block = NULL
        ndx_stripe_lock(NDX_QUEUES)
        while left[0] and self.at_home.next != &self.at_home:
            left[0] -= 1
            block = self.at_home.next
            unlink(block)
            link(&self.at_home, block)
            if block_is_watched(block) and ndx_get_int(&block.pins) == 0 \
                    and ndx_up_if_any(&block.refs):
                break
            if not swaps:
                block_watch(block)
            block = NULL
        ndx_stripe_unlock(NDX_QUEUES)
        return block

    # ---------------------------------------------------------------- coming back

    cdef int bring_back(self, Block *block) except -1:
        """Move a block that is about to be used back, if that pays."""
        cdef Backend home = self.home()
        cdef Memory memory
        cdef size_t missing
        if home is None or not may_move(self, block, False):
            return 0
        missing = _pressure.missing_for(home, block.nbytes)
        if missing and not (self.may_swap(block, missing)
                            and self.evict(missing, True) >= missing):
            return 0
        if home.allocate(block.nbytes, False, &memory) == ALLOCATED:
            self.move(block, &memory, home, False, 0)
        return 0

    cdef bint may_swap(self, Block *block, size_t missing) noexcept:
        """Whether a block that is used has the better claim to memory than others."""
        cdef bint may = False
        ndx_stripe_lock(NDX_QUEUES)
        self.uses += 1
        self.unseen += 1
        if block.index & SWAPPED:
            block.index = 0
            self.regretted = True
        block.index += 1
        if block.index >= USES and self.uses >= self.patience:
            if self.regretted:
                self.patience = min(2 * self.patience, <size_t>MOST_PATIENCE)
            else:
                self.patience -= self.patience >> 1
            self.regretted = False
            self.uses = 0
            may = self.bytes_at_home(missing, True) >= missing
        if not may and self.unseen > max(self.count >> LOOK_SHIFT, self.patience):
            self.look()
        ndx_stripe_unlock(NDX_QUEUES)
        return may

    # With the lock of the queues.

    cdef void look(self) noexcept:
        """Watch all blocks at home; those used since the last look go to the end."""
        cdef Block *block
        cdef Block *after
        cdef size_t left
        self.unseen = self.admitted = 0
        left = self.count
        after = self.at_home.next
        # One that is copied now is counted, and in no list.
        while left and after != &self.at_home:
            left -= 1
            block = after
            after = block.next
            if block_watch(block):
                unlink(block)
                link(&self.at_home, block)

    cdef size_t bytes_at_home(self, size_t enough, bint unused) noexcept:
        """Return the bytes of blocks that may leave, or enough of them.

        `unused`: of those not used since the last look.
        """
        cdef Block *block
        cdef size_t found = 0
        block = self.at_home.next
        while block != &self.at_home and found < enough:
            if (block_is_watched(block) or not unused) \
                    and ndx_get_int(&block.pins) == 0:
                found += block.nbytes
            block = block.next
        return found

    # --------------------------------------------------------------------- moving

    cdef bint move(self, Block *block, const Memory *memory, Backend to, bint leaves,
                   unsigned int index) noexcept:
        """Move a block to memory of a backend, which takes that back if it can't."""
        cdef Memory before = memory[0]
        cdef PyObject *backend = <PyObject *>to
        cdef PyObject *memory_owner = NULL
        cdef const uint64_t *now
        cdef bint moved
        Py_INCREF(to)
        if block.device:
            moved = self.copy_ahead(block, memory, to, leaves)
            block_lock(block)
        else:
            trace(memory.ptr, block.nbytes)
            block_lock(block)
            block_watch(block)
            moved = True
        moved = moved and block_is_watched(block)
        now = block_hide(block)
        moved = moved and is_movable(self, block, leaves)
        if moved and not block.device:
            memcpy(memory.ptr, block.ptr, block.nbytes)
            # What can't be read from its file stays there, where uses find that.
            moved = not (any_lost() and is_lost(block.ptr, block.nbytes))
        if moved:
            before = block_memory(block)
            backend = block.backend
            memory_owner = block.memory_owner
            block.memory_owner = NULL
            block_take_memory(block, memory)
            block.backend = <PyObject *>to
            block.index = index
            ndx_stripe_lock(NDX_QUEUES)
            unlink(block)
            if leaves:
                ndx_store_byte(&block.holding, AWAY)
                link(&self.away, block)
                self.count -= 1
                self.away_bytes += block.nbytes
                self.evicted_count += 1
                self.evicted_bytes += block.nbytes
            else:
                link(&self.at_home, block)
                self.count += 1
                self.away_bytes -= block.nbytes
                self.returned_count += 1
                self.returned_bytes += block.nbytes
            ndx_stripe_unlock(NDX_QUEUES)
            block_set_free(block)
        else:
            ndx_set_clock(&block.now, now)
            if block.device and block.parent == <PyObject *>self:
                ndx_stripe_lock(NDX_QUEUES)
                unlink(block)
                link(&self.at_home if leaves else &self.away, block)
                ndx_stripe_unlock(NDX_QUEUES)
        block_unlock(block)
        if before.ptr != NULL:
            untrace(before.ptr)
            (<Backend>backend).release(&before)
        Py_XDECREF(backend)
        Py_XDECREF(memory_owner)
        if moved:
            note_moved(block)
        return moved

    cdef bint copy_ahead(self, Block *block, const Memory *memory, Backend to,
                         bint leaves) noexcept:
        """Copy a block on a device to where it is to go, and watch it until then.

        It is in no list meanwhile, so that no look watches it anew after a use. The
        pin keeps its memory.
        """
        cdef Memory before
        cdef PyObject *backend
        cdef bint copied = False
        block_lock(block)
        block_watch(block)
        if not block_is_watched(block) or not is_movable(self, block, leaves):
            block_unlock(block)
            return False
        ndx_stripe_lock(NDX_QUEUES)
        unlink(block)
        block.prev = block.next = block
        ndx_stripe_unlock(NDX_QUEUES)
        before = block_memory(block)
        backend = block.backend
        Py_INCREF(<object>backend)
        block_pin(block)
        block_unlock(block)
        try:
            # All streams that were given it are done, and nobody else has it.
            (<Backend>backend).finish(&before)
            to._receive(<uintptr_t>memory.ptr, <uintptr_t>before.ptr, block.nbytes)
            copied = True
        except BaseException as error:
            report_ignored(self, error)
        block_unpin(block)
        Py_XDECREF(backend)
        return copied

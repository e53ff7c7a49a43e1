"""The mirror of a device's arena: page-locked memory of the host, of the same size.

A copy of what lies in the arena lies at the same offset of the mirror, for the same
cycle. So it needs no allocation, and both ends of a transfer are where the device can
reach them by itself. A place that is still in use, by an array or by foreign code, is
not given to another: the caller takes the ordinary way then.
"""

cimport cython
from libc.stdlib cimport free, realloc

from ndx._arenas.arena cimport Arena
from ndx._arenas.counts cimport counts_begin
from ndx._blocks.block cimport Block
from ndx._lib.sizing cimport LINE, ndx_round_down, ndx_round_up
from ndx.backends._pool.store cimport CPU
from ndx.backends.pinned cimport PinnedBackend

import dataclasses

from ndx import backends

cdef extern from "ndx/internal/poison.h":
    void ndx_unpoison(void *ptr, size_t nbytes)


@cython.no_gc_clear
cdef class MirrorArena(Arena):
    """An arena whose blocks are placed by another one."""

    def __cinit__(self, *args):
        # Blocks lie as they do on the device, without guards.
        self.guarded = False

    def __dealloc__(self):
        # If the constructor failed, the methods of this class may not be called.
        if self.ntransfers:
            self.wait_for_copies(0, <size_t>-1)
        free(self.transfers)

    cdef char *place(self, Block *block, size_t needed) noexcept:
        return self.chunk.ptr + self.at

    cdef void begin(self) noexcept:
        counts_begin(&self.counts)
        self.used = True
        self.clock.open = True

    cdef int finish(self) except -1:
        self.clock.open = False
        return 0

    cdef int drop_chunk(self) except -1:
        # A chunk is rarely outgrown: wait for the devices that still read it.
        self.wait_for_copies(0, <size_t>-1)
        return Arena.drop_chunk(self)

    cdef Block *serve(self, size_t low, size_t high) except? NULL:
        """Return a block of this cycle at a place; NULL if the place is in use."""
        low, high = ndx_round_down(low, LINE), ndx_round_up(high, LINE)
        if self.is_taken(low, high):
            return NULL
        self.wait_for_copies(low, high)
        self.at = low
        return self.allocate(high - low, False)

    cdef char *stage(self, size_t low, size_t high) except? NULL:
        """Return the address for a transfer to the device; NULL: a place in use."""
        if self.is_taken(low, high):
            return NULL
        self.wait_for_copies(low, high)
        ndx_unpoison(self.chunk.ptr + low, high - low)
        return self.chunk.ptr + low

    cdef int note_copy(self, size_t low, size_t high, size_t stream) except -1:
        """Note that a stream of the current device was given a copy from a place."""
        cdef PinnedBackend home = self.home
        cdef Py_ssize_t more = 2 * self.capacity + 16
        cdef Transfer *grown
        cdef void *event = home.source.record(stream)
        if event == NULL:
            return 0
        if self.ntransfers == self.capacity:
            grown = <Transfer *>realloc(self.transfers, more * sizeof(Transfer))
            if grown == NULL:
                home.source.wait(CPU, event)
                home.source.drop_event(event)
                return 0
            self.transfers = grown
            self.capacity = more
        self.transfers[self.ntransfers].low = low
        self.transfers[self.ntransfers].high = high
        self.transfers[self.ntransfers].event = event
        self.ntransfers += 1
        return 0

    cdef bint is_taken(self, size_t low, size_t high) noexcept:
        """Whether an array, or foreign code, may still use a part of a place."""
        return overlaps(self, &self.live, low, high) or \
            overlaps(self, &self.pinned, low, high)

    cdef int wait_for_copies(self, size_t low, size_t high) except -1:
        """Wait for the copies from or to a place; forget those that are done."""
        cdef PinnedBackend home = self.home
        cdef Py_ssize_t i = 0
        cdef Transfer transfer
        while i < self.ntransfers:
            transfer = self.transfers[i]
            if transfer.low < high and low < transfer.high:
                home.source.wait(CPU, transfer.event)
            elif not home.source.is_done(transfer.event):
                i += 1
                continue
            # Others may have been appended meanwhile; this one is where it was.
            self.ntransfers -= 1
            self.transfers[i] = self.transfers[self.ntransfers]
            home.source.drop_event(transfer.event)
        return 0


cdef bint overlaps(MirrorArena mirror, Block *head, size_t low, size_t high) noexcept:
    cdef Block *block = head.next
    cdef size_t start
    while block != head:
        if mirror.holds(block):
            start = block.ptr - mirror.chunk.ptr
            if start < high and low < start + block.nbytes:
                return True
        block = block.next
    return False


def add_mirror(Arena arena not None, config):
    """Give a device's arena a mirror, which follows its size."""
    config = dataclasses.replace(config, mirror="none", spill="external")
    arena.mirror = MirrorArena(arena.clock.name, backends.get("pinned"), arena.sizing,
                               config)

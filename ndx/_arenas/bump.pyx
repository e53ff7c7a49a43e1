"""The common arena: a cursor moves through the free ranges of the chunk.

What is freed within a cycle is not used again before the next one.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdlib cimport qsort

from ndx._arenas.arena cimport Arena
from ndx._arenas.in_use cimport Range, count_pinned, find_pinned
from ndx._blocks.block cimport Block


cdef int compare(const void *a, const void *b) noexcept nogil:
    cdef size_t x = (<const Range *>a).low
    cdef size_t y = (<const Range *>b).low
    return (x > y) - (x < y)


cdef class BumpArena(Arena):
    """An arena of which a cycle needs the sum of the bytes that it allocates."""

    def __dealloc__(self):
        PyMem_RawFree(self.gaps)

    cdef int find_free(self) except -1:
        """List the free ranges between the pinned ones, lowest first."""
        cdef Py_ssize_t count = 0, i
        cdef size_t start = 0, next_start
        cdef Range *gaps = self.gaps
        self.ngaps = 0
        self.first_gap = 0
        if self.size == 0:
            return 0
        count = 1 + count_pinned(self) if self.pinned_count else 1
        if count > self.capacity:
            gaps = <Range *>PyMem_RawRealloc(gaps, 2 * count * sizeof(Range))
            if gaps == NULL:
                raise MemoryError("no memory for the list of free ranges")
            self.gaps = gaps
            self.capacity = 2 * count
        count = find_pinned(self, gaps) if self.pinned_count else 0
        if count > 1:
            qsort(gaps, count, sizeof(Range), compare)
        # Turn the ranges in use into the gaps before them, in place.
        for i in range(count):
            next_start = gaps[i].high
            if gaps[i].low > start:
                gaps[self.ngaps].high = gaps[i].low
                gaps[self.ngaps].low = start
                self.ngaps += 1
            if next_start > start:
                start = next_start
        if self.size > start:
            gaps[self.ngaps].low = start
            gaps[self.ngaps].high = self.size
            self.ngaps += 1
        return 0

    cdef char *place(self, Block *block, size_t needed) noexcept:
        """Take a block from the first free range that has room, at its cursor."""
        cdef Py_ssize_t i
        cdef Range *gap
        cdef char *ptr
        for i in range(self.first_gap, self.ngaps):
            gap = &self.gaps[i]
            if gap.high - gap.low >= needed:
                ptr = self.chunk.ptr + gap.low
                gap.low += needed
                if gap.low > self.offset:
                    self.offset = gap.low
                if gap.low == gap.high and i == self.first_gap:
                    self.first_gap += 1
                return ptr
        return NULL

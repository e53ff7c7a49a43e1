"""Arenas of which a cycle takes the peak of what lives in it, rather than the sum.

Reference counting tells exactly when each temporary dies, so after one cycle the
sizes, births and deaths of all of its blocks are known. Offsets are planned from
them: blocks that don't live at the same time share memory, and each cycle uses the
same addresses. A planned place is taken only if it is free by then; otherwise the
block goes to any free place, and the plan is made again at the end of the cycle.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc

from ndx._arenas.arena cimport Arena
from ndx._arenas.bitmap cimport bitmap_free, bitmap_reset, find, give, is_free, take
from ndx._arenas.in_use cimport Range, count_pinned, find_pinned
from ndx._arenas.offsets cimport ANYWHERE, NEVER, TRACES, Life, plan_offsets
from ndx._blocks.block cimport Block


@cython.no_gc_clear
@cython.binding(False)
@cython.embedsignature(True)
cdef class PlannedArena(Arena):
    """An arena whose offsets are planned from the lifetimes of a cycle's blocks."""

    def __cinit__(self, *args):
        self.reuses = True

    def __dealloc__(self):
        bitmap_free(&self.taken)
        PyMem_RawFree(self.plan)
        PyMem_RawFree(self.trace)

    cdef int find_free(self) except -1:
        cdef Py_ssize_t count, i
        cdef Range *ranges
        self.traced = 0
        self.time = 0
        self.departed = 0
        self.lost = False
        bitmap_reset(&self.taken, self.size)
        if self.pinned_count == 0 or self.size == 0:
            return 0
        count = count_pinned(self)
        ranges = <Range *>PyMem_RawMalloc(count * sizeof(Range))
        if ranges == NULL:
            raise MemoryError("no memory for the list of ranges in use")
        for i in range(find_pinned(self, ranges)):
            take(&self.taken, ranges[i].low, ranges[i].high)
        PyMem_RawFree(ranges)
        return 0

    cdef char *place(self, Block *block, size_t needed) noexcept:
        cdef Py_ssize_t i = self.traced, offset = -1
        block.index = <unsigned int>i
        self.record(needed)
        if i < self.planned and needed <= self.plan[i].nbytes:
            if self.plan[i].offset == ANYWHERE:
                offset = find(&self.taken, needed, self.height)
            elif is_free(&self.taken, self.plan[i].offset,
                         self.plan[i].offset + needed):
                offset = self.plan[i].offset
        if offset < 0:
            self.departed += 1
            if self.planned:
                self.counts.departures += 1
            offset = find(&self.taken, needed, 0)
            if offset < 0:
                return NULL
        take(&self.taken, offset, offset + needed)
        if offset + needed > self.offset:
            self.offset = offset + needed
        return self.chunk.ptr + offset

    cdef int record(self, size_t needed) noexcept:
        cdef Py_ssize_t i = self.traced, more = 2 * self.capacity + 64
        cdef Life *grown
        cdef int trace
        if self.lost:
            return 0
        if i == self.capacity:
            grown = <Life *>PyMem_RawRealloc(self.trace, more * sizeof(Life))
            if grown == NULL:
                # Without a trace there is no plan, but all else works.
                self.lost = True
                return 0
            self.trace = grown
            self.capacity = more
        self.trace[i].nbytes = needed
        self.trace[i].offset = 0
        for trace in range(TRACES):
            self.trace[i].birth[trace] = NEVER
            self.trace[i].death[trace] = NEVER
        self.trace[i].birth[0] = self.time
        self.time += 1
        self.traced += 1
        return 0

    cdef void vacate(self, Block *block) noexcept:
        if block.nbytes == 0 or self.spills_all:
            return
        if <Py_ssize_t>block.index < self.traced:
            self.trace[block.index].death[0] = self.time
            self.time += 1
        if self.holds(block):
            give(&self.taken, block.ptr - self.chunk.ptr,
                 block.ptr - self.chunk.ptr + self.extent(block))

    cdef void observe(self) noexcept:
        """Make a plan, if there is none or the cycle departed from it."""
        if self.departed and not self.lost and self.counts.cycles >= self.plan_again:
            try:
                self.make_plan()
            except MemoryError:
                # No memory for a plan: the next cycle departs as this one did, and asks
                # again.
                pass

    cdef int make_plan(self) except -1:
        cdef Life *lives = NULL
        cdef Py_ssize_t count = 0
        cdef size_t needed = self.join(&lives, &count)
        PyMem_RawFree(self.plan)
        self.plan = lives
        # Cycles that never repeat themselves are not worth a plan each.
        if self.planned:
            self.pause = min(2 * self.pause + 1, <size_t>256)
            self.plan_again = self.counts.cycles + self.pause
        self.planned = count
        self.sizing.observe(needed)
        return 0

    cdef size_t join(self, Life **out, Py_ssize_t *count) except? 0:
        """Plan for this cycle and, as its second, for what the plan was made for.

        Returns the bytes that the arena needs.
        """
        cdef Py_ssize_t n = max(self.planned, self.traced), i
        cdef Life *lives = <Life *>PyMem_RawMalloc((n + 1) * sizeof(Life))
        cdef size_t needed
        if lives == NULL:
            raise MemoryError("no memory to plan an arena")
        for i in range(n):
            if i < self.traced:
                lives[i] = self.trace[i]
            else:
                lives[i].nbytes = 0
                lives[i].birth[0] = lives[i].death[0] = NEVER
            if i < self.planned:
                lives[i].nbytes = max(lives[i].nbytes, self.plan[i].nbytes)
                lives[i].birth[1] = self.plan[i].birth[0]
                lives[i].death[1] = self.plan[i].death[0]
            else:
                lives[i].birth[1] = lives[i].death[1] = NEVER
        try:
            needed = plan_offsets(lives, n, &self.height)
        except BaseException:
            PyMem_RawFree(lives)
            raise
        out[0] = lives
        count[0] = n
        return needed

    cdef int destroy(self) except -1:
        Arena.destroy(self)
        self.planned = 0
        self.plan_again = self.pause = 0
        return 0

    @property
    def plan_entries(self):
        """Number of allocations that the plan has a place for."""
        return self.planned

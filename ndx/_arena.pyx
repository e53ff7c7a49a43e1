"""Arenas: the memory of a workspace, handed out by bumping a cursor.

A cycle runs from `begin` to `end`. All that was made in it goes stale at its end,
wherever it lies; what foreign code still reads then keeps its range of bytes, and
later cycles allocate around it.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdlib cimport free, qsort, realloc
from libc.string cimport memset

from ndx._memory cimport (
    Block, BlockOwner, Clock, Export, block_blank, block_decref, block_purge,
    block_release_memory, obtain,
)
from ndx.backends.base cimport ALIGNMENT, Backend

from ndx._errors import OutOfMemoryError
from ndx._sizes import format_size


cdef extern from "ndx/poison.h":
    void ndx_poison(void *ptr, size_t nbytes)
    void ndx_unpoison(void *ptr, size_t nbytes)


cdef inline size_t rounded(size_t nbytes) noexcept:
    return (nbytes + ALIGNMENT - 1) & ~<size_t>(ALIGNMENT - 1)


cdef inline void link(Block *head, Block *block) noexcept:
    block.prev = head.prev
    block.next = head
    head.prev.next = block
    head.prev = block


cdef inline void unlink(Block *block) noexcept:
    block.prev.next = block.next
    block.next.prev = block.prev
    block.prev = NULL
    block.next = NULL


cdef int compare_gaps(const void *a, const void *b) noexcept nogil:
    cdef size_t x = (<const Gap *>a).cursor
    cdef size_t y = (<const Gap *>b).cursor
    return (x > y) - (x < y)


# Not cleared by the collector: it needs its backend to give its memory back.
@cython.no_gc_clear
cdef class Arena(BlockOwner):
    """The memory of one workspace; it knows nothing of contexts or arrays.

    Parameters
    ----------
    name : str
        The workspace's name, for messages.
    backend : Backend
        Where the arena, and what does not fit it, come from.
    size : int
        Bytes of the arena; 0 for one that is sized after its first cycle, or (if
        `learn_first` is false) for none.
    learn_first : bool
        Whether the first cycle decides the size, where `size` is 0.
    overallocation : float
        What is added to a learned size, as a part of it.
    spill_fails : bool
        Whether a request that does not fit raises, once the arena has its size;
        otherwise the backend serves it.
    """

    def __cinit__(self, str name, Backend backend, size_t size, bint learn_first,
                  double overallocation, bint spill_fails):
        self.live.prev = self.live.next = &self.live
        self.retained.prev = self.retained.next = &self.retained
        self.clock = Clock.__new__(Clock)
        self.clock.name = name
        self.clock.now = 1
        self.backend = backend
        self.learn_first = learn_first
        self.overallocation = overallocation
        self.spill_fails = spill_fails
        if size:
            self.resize(rounded(size))

    def __dealloc__(self):
        # Every live or retained block holds a reference to this, so there is none.
        if self.size:
            ndx_unpoison(self.chunk.ptr, self.size)
            self.backend.release(&self.chunk)
        free(self.gaps)

    cdef int resize(self, size_t size) except -1:
        """Obtain the memory; only while there is none."""
        obtain(self.backend, size, False, &self.chunk)
        self.size = size
        return 0

    cdef int begin(self) except -1:
        """Start a cycle: find what of the arena is free."""
        cdef Py_ssize_t needed = 1
        cdef Block *block
        cdef Export *export
        if self.size:
            if self.retained_count:
                block = self.retained.next
                while block != &self.retained:
                    needed += 1
                    export = block.exports
                    while export != NULL:
                        needed += 1
                        export = export.next
                    block = block.next
            self.reserve_gaps(needed)
            self.find_gaps()
        self.offset = 0
        self.cycle_bytes = 0
        self.spilled_count = 0
        self.spilled_bytes = 0
        self.clock.open = True
        return 0

    cdef int reserve_gaps(self, Py_ssize_t needed) except -1:
        cdef Gap *gaps
        if needed > self.capacity:
            gaps = <Gap *>realloc(self.gaps, 2 * needed * sizeof(Gap))
            if gaps == NULL:
                raise MemoryError("no memory for the list of free ranges")
            self.gaps = gaps
            self.capacity = 2 * needed
        return 0

    cdef void find_gaps(self) noexcept:
        """List the stretches between the retained ranges, lowest first."""
        cdef Py_ssize_t count = 0, i
        cdef size_t start = 0, next_start
        cdef Gap *gaps = self.gaps
        cdef Block *block = self.retained.next
        while block != &self.retained:
            # Spilled blocks have memory of their own.
            if block.backend == NULL and block.keeper == NULL:
                count = self.retained_ranges(block, count)
            block = block.next
        if count > 1:
            qsort(gaps, count, sizeof(Gap), compare_gaps)
        # Turn the ranges in use into the gaps before them, in place.
        self.ngaps = 0
        for i in range(count):
            next_start = gaps[i].end
            if gaps[i].cursor > start:
                gaps[self.ngaps].end = gaps[i].cursor
                gaps[self.ngaps].cursor = start
                self.ngaps += 1
            if next_start > start:
                start = next_start
        if self.size > start:
            gaps[self.ngaps].cursor = start
            gaps[self.ngaps].end = self.size
            self.ngaps += 1
        self.first_gap = 0

    cdef Py_ssize_t retained_ranges(self, Block *block, Py_ssize_t count) noexcept:
        """Append the ranges of the arena that a retained block still needs."""
        cdef size_t base = block.ptr - self.chunk.ptr
        cdef Export *export = block.exports
        if block.pins > 0:
            self.gaps[count].cursor = base
            self.gaps[count].end = base + rounded(block.nbytes)
            return count + 1
        while export != NULL:
            if export.high > export.low:
                self.gaps[count].cursor = \
                    base + (export.low & ~<size_t>(ALIGNMENT - 1))
                self.gaps[count].end = base + rounded(export.high)
                count += 1
            export = export.next
        return count

    cdef Block *allocate(self, size_t nbytes, bint zero) except NULL:
        """Return a block of this cycle's generation."""
        cdef Block *block = block_blank()
        cdef size_t needed = rounded(nbytes)
        cdef Py_ssize_t i
        cdef Gap *gap
        block.nbytes = nbytes
        block.now = &self.clock.now
        block.generation = self.clock.now
        Py_INCREF(self.clock)
        block.clock = <PyObject *>self.clock
        if nbytes == 0:
            Py_INCREF(self.backend)
            block.backend = <PyObject *>self.backend
            return block
        for i in range(self.first_gap, self.ngaps):
            gap = &self.gaps[i]
            if gap.end - gap.cursor >= needed:
                block.ptr = self.chunk.ptr + gap.cursor
                gap.cursor += needed
                if gap.cursor > self.offset:
                    self.offset = gap.cursor
                if gap.cursor == gap.end and i == self.first_gap:
                    self.first_gap += 1
                ndx_unpoison(block.ptr, nbytes)
                if zero:
                    memset(block.ptr, 0, nbytes)
                break
        else:
            self.spill(block, zero)
        self.cycle_bytes += needed
        Py_INCREF(self)
        block.owner = <PyObject *>self
        link(&self.live, block)
        return block

    cdef int spill(self, Block *block, bint zero) except -1:
        """Serve a request that does not fit from the backend; or raise."""
        try:
            if self.spill_fails and self.size:
                raise self.full_error(block.nbytes)
            obtain(self.backend, block.nbytes, zero, &block.memory)
        except BaseException:
            block_decref(block)
            raise
        Py_INCREF(self.backend)
        block.backend = <PyObject *>self.backend
        block.ptr = block.memory.ptr
        self.spilled_count += 1
        self.spilled_bytes += rounded(block.nbytes)
        self.total_spills += 1
        return 0

    cdef int adopt(self, Block *block) except -1:
        """Make a block that was obtained elsewhere a spilled one of this cycle."""
        block.now = &self.clock.now
        block.generation = self.clock.now
        Py_INCREF(self.clock)
        block.clock = <PyObject *>self.clock
        Py_INCREF(self)
        block.owner = <PyObject *>self
        link(&self.live, block)
        self.cycle_bytes += rounded(block.nbytes)
        self.spilled_count += 1
        self.spilled_bytes += rounded(block.nbytes)
        self.total_spills += 1
        return 0

    cdef object full_error(self, size_t nbytes):
        return OutOfMemoryError(
            f"workspace {self.clock.name!r} is full: {format_size(nbytes)} ({nbytes} "
            f"bytes) asked for, {format_size(self.cycle_bytes)} of "
            f"{format_size(self.size)} taken in this cycle. To go on, make it larger "
            "(size=...), let it spill (spill='external'), or end the scope earlier.",
            nbytes, self.cycle_bytes, self.size, self.size, self.backend.name)

    cdef int end(self) except -1:
        """End the cycle: all blocks made in it go stale; learn the size."""
        cdef Block *block
        cdef size_t wanted
        self.clock.now += 1
        self.clock.open = False
        self.offset = 0
        self.cycles += 1
        self.last_cycle_bytes = self.cycle_bytes
        if self.cycle_bytes > self.max_cycle_bytes:
            self.max_cycle_bytes = self.cycle_bytes
        while self.live.next != &self.live:
            block = self.live.next
            unlink(block)
            if block.pins > 0 or block.exports != NULL:
                block.retired = True
                link(&self.retained, block)
                self.retained_count += 1
                block_purge(block)
            else:
                self.poison(block)
                block.owner = NULL
                block_release_memory(block)
                Py_DECREF(self)
        if self.learn_first and self.size == 0 and self.cycle_bytes:
            wanted = rounded(<size_t>(self.cycle_bytes * (1 + self.overallocation)))
            try:
                self.resize(wanted)
            except MemoryError:
                # The scope has ended all the same; the next cycle spills, and asks
                # again at its end.
                pass
        return 0

    cdef void block_freed(self, Block *block) noexcept:
        if block.retired:
            self.retained_count -= 1
        if block.prev != NULL:
            unlink(block)
        self.poison(block)

    cdef void poison(self, Block *block) noexcept:
        """Let AddressSanitizer report what still touches a range of the arena."""
        if block.backend == NULL and block.keeper == NULL:
            ndx_poison(block.ptr, rounded(block.nbytes))

    cdef void block_idle(self, Block *block) noexcept:
        self.retained_count -= 1
        unlink(block)
        self.poison(block)

    @property
    def retained_bytes(self):
        """Bytes of past cycles that foreign code still uses."""
        cdef size_t total = 0
        cdef Block *block = self.retained.next
        cdef Export *export
        while block != &self.retained:
            if block.pins > 0 or block.backend != NULL or block.keeper != NULL:
                total += rounded(block.nbytes) - block.memory.purged
            else:
                export = block.exports
                while export != NULL:
                    total += rounded(export.high) - (
                        export.low & ~<size_t>(ALIGNMENT - 1))
                    export = export.next
            block = block.next
        return total

    @property
    def retained_blocks(self):
        """Number of blocks of past cycles that foreign code still uses."""
        return self.retained_count

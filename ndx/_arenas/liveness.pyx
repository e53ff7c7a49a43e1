"""Arenas of which a cycle takes the peak of what lives in it, rather than the sum.

Reference counting tells exactly when each temporary dies, so after one cycle the
sizes, births and deaths of all of its blocks are known. Offsets are planned from
them: blocks that don't live at the same time share memory, and each cycle uses the
same addresses. A planned place is taken only if it is free by then; otherwise the
block goes to any free place, and the plan is made again at the end of the cycle.
"""

cimport cython
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.stdint cimport SIZE_MAX, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from ndx._arenas.arena cimport Arena, Range, count_pinned, find_pinned
from ndx._blocks.block cimport Block
from ndx.backends.base cimport ALIGNMENT


# ---- The ranges of a chunk that are in use, as bits ----------------------------------
# A check, a mark or a search costs a word for each 64 granules. A granule is a line (64
# bytes) up to chunks of 64 MiB, and more above, so that there are at most 2**20.
# Offsets and sizes are in bytes; ranges are widened to whole granules.

cdef extern from "ndx/internal/arithmetic.h" nogil:
    int ndx_lowest_bit(uint64_t number)

cdef enum:
    MOST_BITS = 1 << 20

cdef uint64_t ONES = ~<uint64_t>0


cdef size_t granule_of(size_t nbytes) noexcept nogil:
    """Return the bytes per bit in the map of a chunk of `nbytes`."""
    cdef size_t granule = ALIGNMENT
    while nbytes // granule > MOST_BITS:
        granule *= 2
    return granule


cdef int bitmap_reset(Bitmap *bitmap, size_t nbytes) except -1:
    """Describe a chunk of `nbytes`, all of it free."""
    cdef size_t granule = granule_of(nbytes), words
    cdef uint64_t *grown
    # A part of a granule at the end is not used.
    bitmap.granule = granule
    bitmap.nbits = nbytes // granule
    words = (bitmap.nbits + 63) // 64
    if words > bitmap.capacity:
        grown = <uint64_t *>PyMem_RawRealloc(bitmap.words, words * sizeof(uint64_t))
        if grown == NULL:
            bitmap.nbits = 0
            raise MemoryError("no memory for the map of an arena")
        bitmap.words = grown
        bitmap.capacity = words
    if words:
        memset(bitmap.words, 0, words * sizeof(uint64_t))
    return 0


cdef void bitmap_free(Bitmap *bitmap) noexcept:
    PyMem_RawFree(bitmap.words)
    bitmap.words = NULL
    bitmap.capacity = bitmap.nbits = 0


cdef inline size_t first_bit(const Bitmap *bitmap, size_t low) noexcept nogil:
    return low // bitmap.granule


cdef inline size_t last_bit(const Bitmap *bitmap, size_t high) noexcept nogil:
    return (high + bitmap.granule - 1) // bitmap.granule


cdef inline uint64_t mask_of(size_t word, size_t first, size_t end) noexcept nogil:
    """Return the bits of one word that lie in [first, end)."""
    cdef uint64_t mask = ONES
    if first > word * 64:
        mask &= ONES << (first - word * 64)
    if end < word * 64 + 64:
        mask &= ONES >> (word * 64 + 64 - end)
    return mask


cdef bint is_free(const Bitmap *bitmap, size_t low, size_t high) noexcept nogil:
    """Whether a range lies in the chunk, and no block has any part of it."""
    cdef size_t first = first_bit(bitmap, low), end = last_bit(bitmap, high), word
    if end > bitmap.nbits:
        return False
    if first == end:
        return True
    for word in range(first // 64, (end - 1) // 64 + 1):
        if bitmap.words[word] & mask_of(word, first, end):
            return False
    return True


cdef void take(Bitmap *bitmap, size_t low, size_t high) noexcept nogil:
    cdef size_t first = first_bit(bitmap, low), end = last_bit(bitmap, high), word
    end = min(end, bitmap.nbits)
    if first >= end:
        return
    for word in range(first // 64, (end - 1) // 64 + 1):
        bitmap.words[word] |= mask_of(word, first, end)


cdef void give(Bitmap *bitmap, size_t low, size_t high) noexcept nogil:
    cdef size_t first = first_bit(bitmap, low), end = last_bit(bitmap, high), word
    end = min(end, bitmap.nbits)
    if first >= end:
        return
    for word in range(first // 64, (end - 1) // 64 + 1):
        bitmap.words[word] &= ~mask_of(word, first, end)


cdef size_t next_bit(const Bitmap *bitmap, size_t start, bint taken) noexcept nogil:
    """Return the first bit from `start` on that is set (or clear); or the end."""
    cdef uint64_t flip = 0 if taken else ONES
    cdef size_t word = start // 64
    cdef size_t words = (bitmap.nbits + 63) // 64
    cdef uint64_t bits
    if start >= bitmap.nbits:
        return bitmap.nbits
    bits = (bitmap.words[word] ^ flip) & (ONES << (start - word * 64))
    while bits == 0:
        word += 1
        if word == words:
            return bitmap.nbits
        bits = bitmap.words[word] ^ flip
    return min(bitmap.nbits, word * 64 + ndx_lowest_bit(bits))


cdef Py_ssize_t find(const Bitmap *bitmap, size_t nbytes,
                     size_t start) noexcept nogil:
    """Return the lowest offset, from `start` on, of a free range; -1 without one."""
    cdef size_t needed = (nbytes + bitmap.granule - 1) // bitmap.granule, end
    start = last_bit(bitmap, start)
    while True:
        start = next_bit(bitmap, start, False)
        if start + needed > bitmap.nbits:
            return -1
        end = next_bit(bitmap, start, True)
        if end - start >= needed:
            return start * bitmap.granule
        start = end


# ---- Offsets for allocations whose lifetimes are known -------------------------------
# The problem is NP-hard; that of arrays in a loop is not a hard one. Blocks are placed
# one after another, each at the lowest offset where it meets none that lives at the
# same time, in a few orders, of which the best counts.
#
# References ---------- Y. Pisarchyk and J. Lee, Efficient memory management for deep
# neural net inference, 2020, https://arxiv.org/abs/2001.03288 (greedy by size).

cdef enum:
    # The time grows with the square of the number of blocks: beyond this, only one
    # order is tried;
    MOST_TRIED = 2048
    # and only this many, the largest, get a place of their own.
    MOST_PLANNED = 16384

cdef size_t NEVER = SIZE_MAX
cdef size_t ANYWHERE = SIZE_MAX      # not planned, any free range will do

cdef struct Entry:
    Py_ssize_t index
    size_t key
    size_t tie

cdef struct Event:
    size_t time
    Py_ssize_t nbytes        # negative for a death


cdef int largest_first(const void *a, const void *b) noexcept nogil:
    cdef const Entry *x = <const Entry *>a
    cdef const Entry *y = <const Entry *>b
    if x.key != y.key:
        return (x.key < y.key) - (x.key > y.key)
    if x.tie != y.tie:
        return (x.tie < y.tie) - (x.tie > y.tie)
    return (x.index > y.index) - (x.index < y.index)


cdef int earliest(const void *a, const void *b) noexcept nogil:
    cdef size_t x = (<const Event *>a).time
    cdef size_t y = (<const Event *>b).time
    return (x > y) - (x < y)


cdef inline bint meet(const Life *a, const Life *b) noexcept nogil:
    """Whether two blocks live at the same time in any of the cycles."""
    cdef int i
    for i in range(TRACES):
        if a.birth[i] < b.death[i] and b.birth[i] < a.death[i]:
            return True
    return False


cdef size_t span(const Life *life) noexcept nogil:
    cdef size_t longest = 0
    cdef int i
    for i in range(TRACES):
        if life.birth[i] != NEVER:
            longest = max(longest, life.death[i] - life.birth[i])
    return longest


cdef size_t place_all(Life *lives, const Entry *order, Py_ssize_t count,
                      Py_ssize_t *placed) noexcept nogil:
    """Give each block an offset, in an order; return the bytes needed in all."""
    cdef Py_ssize_t i, j, done = 0, at
    cdef size_t top = 0, start, height
    cdef Life *life
    cdef Life *other
    for i in range(count):
        life = &lives[order[i].index]
        start = 0
        # `placed` is sorted by offset: the first stretch that is long enough.
        for j in range(done):
            other = &lives[placed[j]]
            if other.offset >= start + life.nbytes:
                break
            if meet(life, other):
                start = max(start, other.offset + other.nbytes)
        life.offset = start
        height = start + life.nbytes
        top = max(top, height)
        at = done
        while at > 0 and lives[placed[at - 1]].offset > start:
            placed[at] = placed[at - 1]
            at -= 1
        placed[at] = order[i].index
        done += 1
    return top


cdef size_t plan_offsets(Life *lives, Py_ssize_t count, size_t *height) except? 0:
    """Choose offsets; blocks that live at the same time share no granule of a map.

    Parameters
    ----------
    lives : Life *
        The blocks; their sizes are rounded up to granules, and offsets set: a number
        of bytes or, for the smallest of very many, ANYWHERE.
    count : Py_ssize_t
        Number of them.
    height : size_t *
        Receives the end of the highest offset.

    Returns
    -------
    size_t
        Bytes of the arena: the height, and room for those without a place.

    Raises
    ------
    MemoryError
        If there is none for the plan.
    """
    cdef Entry *order = <Entry *>PyMem_RawMalloc((count + 1) * sizeof(Entry))
    cdef Py_ssize_t *placed = \
        <Py_ssize_t *>PyMem_RawMalloc((count + 1) * sizeof(Py_ssize_t))
    cdef size_t *best = <size_t *>PyMem_RawMalloc((count + 1) * sizeof(size_t))
    cdef size_t granule, found, lowest = SIZE_MAX, bound = 0, rest = 0
    cdef Py_ssize_t i, few = min(count, MOST_PLANNED)
    cdef int rule, trace
    try:
        if order == NULL or placed == NULL or best == NULL:
            raise MemoryError("no memory to plan an arena")
        for trace in range(TRACES):
            bound = max(bound, peak_of(lives, count, trace))
        # The map is made for twice the peak: the plan may be higher, and the arena
        # larger still.
        granule = granule_of(2 * bound)
        for i in range(count):
            lives[i].nbytes = (lives[i].nbytes + granule - 1) // granule * granule
            best[i] = ANYWHERE
        for rule in range(4):
            for i in range(count):
                order[i].index = i
                if rule == 0:        # by size
                    order[i].key, order[i].tie = lives[i].nbytes, span(&lives[i])
                elif rule == 1:      # by lifetime
                    order[i].key, order[i].tie = span(&lives[i]), lives[i].nbytes
                elif rule == 2:      # by birth
                    order[i].key, order[i].tie = SIZE_MAX - i, 0
                else:                # by the area in space and time
                    order[i].key = lives[i].nbytes // granule * span(&lives[i])
                    order[i].tie = lives[i].nbytes
            with nogil:
                qsort(order, count, sizeof(Entry), largest_first)
                found = place_all(lives, order, few, placed)
            if found < lowest:
                lowest = found
                for i in range(few):
                    best[order[i].index] = lives[order[i].index].offset
            if lowest <= bound or count > MOST_TRIED:
                break
        for i in range(count):
            lives[i].offset = best[i]
        if few < count:
            # The other blocks go to any free range, by first fit, which needs more than
            # their peak.
            for i in range(few, count):
                rest = max(rest, lives[order[i].index].nbytes)
            rest = rest + rest_peak(lives, order, few, count) * 5 // 4
        height[0] = 0 if count == 0 else lowest
        return height[0] + rest
    finally:
        PyMem_RawFree(order)
        PyMem_RawFree(placed)
        PyMem_RawFree(best)


cdef size_t rest_peak(Life *lives, const Entry *order, Py_ssize_t few,
                      Py_ssize_t count) except? 0:
    """Return the peak of live bytes of the blocks without a planned place."""
    cdef Life *rest = <Life *>PyMem_RawMalloc((count - few) * sizeof(Life))
    cdef size_t peak = 0
    cdef Py_ssize_t i
    cdef int trace
    if rest == NULL:
        raise MemoryError("no memory to plan an arena")
    for i in range(few, count):
        rest[i - few] = lives[order[i].index]
    try:
        for trace in range(TRACES):
            peak = max(peak, peak_of(rest, count - few, trace))
    finally:
        PyMem_RawFree(rest)
    return peak


cdef size_t peak_of(const Life *lives, Py_ssize_t count, int trace) except? 0:
    """Return the peak of live bytes in one of the cycles."""
    cdef Event *events = <Event *>PyMem_RawMalloc((2 * count + 1) * sizeof(Event))
    cdef Py_ssize_t i, n = 0
    cdef size_t live = 0, peak = 0
    if events == NULL:
        raise MemoryError("no memory to plan an arena")
    for i in range(count):
        if lives[i].birth[trace] != NEVER:
            events[n].time = lives[i].birth[trace]
            events[n].nbytes = lives[i].nbytes
            n += 1
            if lives[i].death[trace] != NEVER:
                events[n].time = lives[i].death[trace]
                events[n].nbytes = -<Py_ssize_t>lives[i].nbytes
                n += 1
    qsort(events, n, sizeof(Event), earliest)
    for i in range(n):
        live += events[i].nbytes
        peak = max(peak, live)
    PyMem_RawFree(events)
    return peak


# ---- The arena -----------------------------------------------------------------------

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

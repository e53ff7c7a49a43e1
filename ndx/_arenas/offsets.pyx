"""Offsets for allocations whose lifetimes are known (dynamic storage allocation).

The problem is NP-hard; that of arrays in a loop is not a hard one. Blocks are placed
one after another, each at the lowest offset where it meets none that lives at the
same time, in a few orders, of which the best counts.

References
----------
Y. Pisarchyk and J. Lee, Efficient memory management for deep neural net inference,
2020, https://arxiv.org/abs/2001.03288 (greedy by size).
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport SIZE_MAX
from libc.stdlib cimport qsort

from ndx._arenas.bitmap cimport granule_of

cdef enum:
    # The time grows with the square of the number of blocks: beyond this, only one
    # order is tried;
    MOST_TRIED = 2048
    # and only this many, the largest, get a place of their own.
    MOST_PLANNED = 16384

cdef size_t NEVER = SIZE_MAX
cdef size_t ANYWHERE = SIZE_MAX

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

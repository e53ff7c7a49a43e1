"""Reports on a pool, as Python objects.

Numbers are copied under the lock; objects are made of them after it is released.
"""

from libc.stdint cimport uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from ndx._lib.free_threading cimport NDX_SHARDS
from ndx.backends._pool.index cimport COLD, SHELVED, USED, PoolBlock, PoolSegment
from ndx.backends._pool.pool cimport Pool, pool_after
from ndx.backends._pool.store cimport (
    NO_STREAM, PoolCounters, PoolShelf, Slab, bytes_in_use, ndx_lock_acquire,
    ndx_lock_release,
)
from ndx.backends.base cimport CELL, CELL_UNIT

from ndx._lib import caches

# A copy of what is told of one block.
cdef struct Entry:
    uintptr_t segment
    size_t segment_nbytes
    size_t segment_cold
    uintptr_t address
    size_t nbytes
    size_t requested
    size_t stream
    int state
    bint live
    bint small
    bint events


cdef inline bint is_live(PoolBlock *block) noexcept nogil:
    """Whether a block is in use; with its pool's lock, and those of the shelves."""
    return block.state == USED and block.requested != SHELVED


cdef dict pool_stats(Pool pool):
    cdef PoolSegment *segment
    cdef PoolBlock *block
    cdef PoolShelf *shelf
    cdef size_t reserved, rounded, segments, i, largest = 0, small = 0, small_bytes = 0
    cdef size_t units = 0
    cdef int shard
    ndx_lock_acquire(&pool.lock)
    pool.lock_shelves()
    rounded = bytes_in_use(pool)
    for shard in range(NDX_SHARDS):
        shelf = pool.shelves[shard]
        if shelf == NULL:
            continue
        units += shelf.cell_room
        for i in range(1, CELL + 1):
            small += shelf.cells[i]
            small_bytes += i * shelf.cells[i]
            units += (i + CELL_UNIT - 1) // CELL_UNIT * shelf.cells[i]
    reserved = pool.counters.reserved
    segments = pool.segment_count
    segment = pool.segments
    while segment != NULL:
        block = segment.first
        while block != NULL:
            if block.state != COLD and not is_live(block):
                largest = max(largest, block.nbytes)
            block = block.next
        segment = segment.next
    pool.unlock_shelves()
    ndx_lock_release(&pool.lock)
    return {
        "rounded_bytes": rounded,
        "cached_bytes": reserved - rounded,
        "largest_free_bytes": largest,
        "segments": segments,
        "small_count": small,
        "small_bytes": small_bytes,
        "small_reserved_bytes": units * CELL_UNIT,
    }


cdef dict pool_events(Pool pool):
    """Return the counts of a pool's events: hits, misses, splits and so on."""
    cdef PoolCounters extra
    cdef uint64_t allocations
    ndx_lock_acquire(&pool.lock)
    pool.gather()
    extra = pool.extra
    allocations = pool.counters.allocations
    ndx_lock_release(&pool.lock)
    return {
        "hits": allocations - min(extra.misses, allocations),
        "misses": extra.misses,
        "splits": extra.splits,
        "merges": extra.merges,
        "steals": extra.steals,
        "commits": extra.commits,
        "purges": extra.purges,
        "trims": extra.trims,
        "refusals": extra.refusals,
    }


cdef Entry *copy_entries(Pool pool, size_t *count) except NULL:
    """Return a copy of the descriptions of all blocks, which the caller frees."""
    cdef Entry *entries
    cdef Entry *entry
    cdef PoolSegment *segment
    cdef PoolBlock *block
    cdef size_t room = 64, found = room + 1
    entries = NULL
    while found > room:
        room = 2 * found
        free(entries)
        entries = <Entry *>malloc(room * sizeof(Entry))
        if entries == NULL:
            raise MemoryError("no memory to list the blocks of a pool")
        found = 0
        ndx_lock_acquire(&pool.lock)
        pool.lock_shelves()
        segment = pool.segments
        while segment != NULL:
            block = segment.first
            while block != NULL:
                if found < room:
                    entry = &entries[found]
                    entry.segment = <uintptr_t>segment.ptr
                    entry.segment_nbytes = segment.nbytes
                    entry.segment_cold = segment.cold
                    entry.small = segment.small
                    entry.address = <uintptr_t>block.ptr
                    entry.nbytes = block.nbytes
                    entry.live = is_live(block)
                    entry.requested = block.requested if entry.live else 0
                    entry.stream = pool.slots[block.slot].stream
                    entry.state = block.state
                    entry.events = block.events != NULL
                found += 1
                block = block.next
            segment = segment.next
        pool.unlock_shelves()
        ndx_lock_release(&pool.lock)
    count[0] = found
    return entries


cdef list pool_snapshot(Pool pool):
    cdef size_t count = 0, i
    cdef Entry *entries = copy_entries(pool, &count)
    cdef Entry *entry
    cdef list segments = []
    cdef dict segment = None
    cdef uintptr_t last = 0
    for i in range(count):
        entry = &entries[i]
        if segment is None or entry.segment != last:
            last = entry.segment
            segment = {
                "address": entry.segment,
                "device": 0,
                "stream": stream_number(entry.stream),
                "total_size": entry.segment_nbytes,
                "reserved_size": entry.segment_nbytes - entry.segment_cold,
                "allocated_size": 0,
                "active_size": 0,
                "requested_size": 0,
                "segment_type": "small" if entry.small else "large",
                "is_expandable": entry.segment_cold > 0,
                "blocks": [],
            }
            segments.append(segment)
        if entry.live:
            state = "active_allocated"
            segment["allocated_size"] += entry.nbytes
            segment["requested_size"] += entry.requested
        elif entry.state == COLD:
            state = "unmapped"
        elif entry.events:
            state = "active_pending_free"
        else:
            state = "inactive"
        if state.startswith("active"):
            segment["active_size"] += entry.nbytes
        segment["blocks"].append({
            "address": entry.address,
            "size": entry.nbytes,
            "requested_size": entry.requested,
            "state": state,
            "stream": stream_number(entry.stream),
            "frames": [],
        })
    free(entries)
    return segments


cdef list pool_ranges(Pool pool):
    """Return the ranges that a pool holds from its source, as (start, bytes)."""
    cdef size_t count = 0, i, start = 0, end = 0
    cdef Entry *entries = copy_entries(pool, &count)
    cdef list ranges = []
    for i in range(count):
        if entries[i].state == COLD:
            continue
        if entries[i].address != end:
            if end > start:
                ranges.append((start, end - start))
            start = entries[i].address
        end = entries[i].address + entries[i].nbytes
    if end > start:
        ranges.append((start, end - start))
    free(entries)
    return ranges


cdef object stream_number(size_t stream):
    return 0 if stream == <size_t>NO_STREAM else stream


cdef list pool_largest_live(Pool pool, int count):
    """Return (bytes, number) of the live ranges, those that hold the most first."""
    cdef size_t found = 0, i
    cdef int shard
    cdef Entry *entries = copy_entries(pool, &found)
    cdef dict sizes = {}
    for i in range(found):
        if entries[i].live:
            sizes[entries[i].requested] = sizes.get(entries[i].requested, 0) + 1
    free(entries)
    for shard in range(NDX_SHARDS):
        for i in range(1, CELL + 1):
            if pool.shelves[shard] != NULL and pool.shelves[shard].cells[i]:
                sizes[i] = sizes.get(i, 0) + pool.shelves[shard].cells[i]
    return sorted(sizes.items(), key=held, reverse=True)[:count]


def held(item):
    """Return the bytes that all ranges of one size hold."""
    return item[0] * item[1]


def descriptions_kept():
    cdef Pool pool = pool_after(None)
    cdef size_t slabs = 0
    while pool is not None:
        slabs += pool.idle_slabs
        pool = pool_after(pool)
    return slabs, slabs * sizeof(Slab)


def drop_descriptions():
    cdef Pool pool = pool_after(None)
    while pool is not None:
        ndx_lock_acquire(&pool.lock)
        pool.drop_idle_slabs(0)
        ndx_lock_release(&pool.lock)
        pool = pool_after(pool)


caches.register("descriptions of pools", None, descriptions_kept, drop_descriptions)

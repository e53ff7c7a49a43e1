"""Guards around the ranges of a pool, and patterns in what is free.

A guarded pool rounds requests up by twice `Pool.guard` bytes, its unit. The holder of a
block gets what lies behind the first guard, and the pool counts what was asked for: a
limit is on what is held, guards included. What is released is filled (`Pool.bury`), and
so are pages that come from the system, so that merged and split blocks are filled, too.

`PoolBlock.filled` says what is in a block: the guards of one in use, or the pattern of
a free one. Only its holder changes that of a block in use, with the lock. What other
threads may touch is compared with the lock; this is for debugging.
"""

from libc.string cimport memset

from ndx._lib.guards cimport (
    BEFORE, BEHIND, DEAD_BYTE, FREED, GUARD_BYTE, Damage, check_fill,
)
from ndx.backends._pool.index cimport (
    DEAD, FREE, GUARDED, SHELVED, UNFILLED, USED, PoolBlock, PoolSegment,
)
from ndx.backends._pool.pool cimport Pool
from ndx.backends._pool.store cimport (
    ndx_lock_acquire, ndx_lock_release, ndx_poison, ndx_unpoison,
)

cdef extern from "ndx/internal/arithmetic.h" nogil:
    size_t ndx_round_up(size_t nbytes, size_t step)


cdef void pool_use_guards(Pool pool) noexcept nogil:
    """Let a new pool of the CPU's memory guard all of its ranges."""
    pool.guard = pool.unit
    pool.lift = pool.unit - 1 + 2 * pool.guard
    # Of blocks, guards included: a shelf has no lists for larger ones.
    pool.quick_max -= min(pool.quick_max, 2 * pool.guard)


cdef inline size_t behind(Pool pool, size_t nbytes) noexcept nogil:
    """Return the bytes of the guard behind a range."""
    return ndx_round_up(nbytes, pool.unit) - nbytes + pool.guard


cdef void mark(Pool pool, PoolBlock *block, unsigned char filled) noexcept nogil:
    ndx_lock_acquire(&pool.lock)
    block.filled = filled
    ndx_lock_release(&pool.lock)


cdef bint check_free(PoolBlock *block, size_t nbytes, Damage *out) noexcept nogil:
    """Whether something wrote to the first bytes of a filled, free block."""
    if not check_fill(block.ptr, nbytes, DEAD_BYTE, out):
        return False
    out.address = <size_t>block.ptr
    out.nbytes = nbytes
    out.place = FREED
    return True


cdef int check_guards(Pool pool, PoolBlock *block, Damage *out) noexcept nogil:
    """Describe what was written to the guards of a block; return how much there is."""
    cdef size_t nbytes = block.requested
    cdef char *ptr = block.ptr + pool.guard
    cdef size_t after = behind(pool, nbytes)
    cdef int count = 0, i
    ndx_unpoison(block.ptr, pool.guard)
    ndx_unpoison(ptr + nbytes, after)
    if check_fill(block.ptr, pool.guard, GUARD_BYTE, &out[0]):
        out[0].first -= pool.guard
        out[0].last -= pool.guard
        out[0].place = BEFORE
        count = 1
    if check_fill(ptr + nbytes, after, GUARD_BYTE, &out[count]):
        out[count].first += nbytes
        out[count].last += nbytes
        out[count].place = BEHIND
        count += 1
    for i in range(count):
        out[i].address = <size_t>ptr
        out[i].nbytes = nbytes
    ndx_poison(block.ptr, pool.guard)
    ndx_poison(ptr + nbytes, after)
    return count


cdef char *pool_guard(Pool pool, PoolBlock *block, Damage *out,
                      int *count) noexcept nogil:
    """Put guards around a block that its holder just got; return the start of its own.

    `count` is set to 1, and `out`, if something wrote to the block while it was free.
    """
    cdef size_t nbytes = block.requested
    cdef char *ptr = block.ptr + pool.guard
    cdef size_t after = behind(pool, nbytes)
    ndx_unpoison(block.ptr, pool.guard + nbytes + after)
    count[0] = block.filled == DEAD and check_free(
        block, pool.guard + nbytes + after, out)
    memset(block.ptr, GUARD_BYTE, pool.guard)
    memset(ptr + nbytes, GUARD_BYTE, after)
    ndx_poison(block.ptr, pool.guard)
    ndx_poison(ptr + nbytes, after)
    mark(pool, block, GUARDED)
    return ptr


cdef int pool_unguard(Pool pool, PoolBlock *block, Damage *out) noexcept nogil:
    """Check the guards of a block for the last time; return how much is in `out`.

    There is room for both guards in it.
    """
    if pool.lost or block.filled != GUARDED:
        return 0
    mark(pool, block, UNFILLED)
    return check_guards(pool, block, out)


cdef int pool_find_damage(Pool pool, Damage *out, int room) noexcept nogil:
    """Describe damage to the ranges of a pool, each once; return how much there is.

    Where that is `room` or one less, there may be more.
    """
    cdef PoolSegment *segment
    cdef PoolBlock *block
    cdef int count = 0
    if not pool.guard or pool.lost:
        return 0
    ndx_lock_acquire(&pool.lock)
    pool.lock_shelves()
    segment = pool.segments
    while segment != NULL:
        block = segment.first
        while block != NULL and count + 1 < room:
            if block.state == USED and block.requested != SHELVED:
                if block.filled == GUARDED:
                    count += check_guards(pool, block, out + count)
            elif block.state in (USED, FREE) and block.filled == DEAD:
                ndx_unpoison(block.ptr, block.nbytes)
                count += check_free(block, block.nbytes, out + count)
                ndx_poison(block.ptr, block.nbytes)
            block = block.next
        segment = segment.next
    pool.unlock_shelves()
    ndx_lock_release(&pool.lock)
    return count

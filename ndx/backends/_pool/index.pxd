"""The blocks of a pool, and an index of the free ones with constant-time search.

Two-level segregated lists: the class of a size is its highest bit and the five bits
after it. Two levels of bitmaps find the next class that has a block.

References
----------
Masmano, Ripoll, Crespo, Real: TLSF, a new dynamic memory allocator for real-time
systems, ECRTS 2004.
"""

from libc.stdint cimport uint32_t, uint64_t

cdef extern from "ndx/internal/arithmetic.h" nogil:
    int ndx_highest_bit(size_t number)
    int ndx_lowest_bit(uint64_t number)

cdef enum:
    UNIT_BITS = 6                # sizes are multiples of 64 bytes
    SUB_BITS = 5
    SUBS = 32
    TOPS = 52
    SCAN = 8                     # blocks of one class that a search inspects

cdef extern from *:
    """
    #define NDX_SHELVED ((size_t)-1)
    """
    size_t SHELVED "NDX_SHELVED"   # what is `requested` of a block on a shelf

cdef enum BlockState:
    USED                         # by an array, or kept on a shelf for the next one
    FREE                         # warm: its memory is held from the system
    COLD                         # address space only; starts and ends on pages
    BUSY                         # in transition: a thread works on it without the lock

# What is in all bytes of a block of a guarded pool.
cdef enum Filling:
    UNFILLED                     # what its holder wrote, or what is not known
    GUARDED                      # of a block in use: a guard at each end
    DEAD                         # of a free one: the pattern of free memory

# An event that was recorded on a stream that used a block, when it was freed.
cdef struct PoolEvent:
    void *event
    PoolEvent *next

# A part of a segment. The pool's lock guards all fields, except those of a USED block,
# which belong to its holder.
cdef struct PoolBlock:
    char *ptr
    size_t nbytes
    size_t requested             # bytes requested, or SHELVED; 0 unless USED
    PoolSegment *segment
    PoolBlock *prev              # neighbours in the segment, by address
    PoolBlock *next
    PoolBlock *prev_free         # in a list of the index; `next_free` in others too
    PoolBlock *next_free
    PoolEvent *events            # to wait for before its reuse
    uint64_t uses                # bit set: slots of other streams that used it
    uint64_t stamp               # time at which it became free, in milliseconds
    BlockState state
    unsigned char slot
    unsigned char filled         # see `Filling`
    unsigned short place         # of this description in its slab, for ever

# A range from the source.
cdef struct PoolSegment:
    char *ptr
    size_t nbytes
    size_t cold                  # bytes that are not held from the system
    char *shown                  # up to here tools know of it; see `Pool.show`
    void *cookie
    PoolBlock *first
    PoolSegment *prev
    PoolSegment *next
    bint small
    bint paged

cdef struct PoolIndex:
    uint64_t tops
    uint32_t subs[TOPS]
    PoolBlock *heads[TOPS][SUBS]


cdef inline void copy_block(const PoolBlock *block, PoolBlock *out) noexcept nogil:
    """Copy the fields that describe a block to another description."""
    cdef unsigned short place = out.place
    out[0] = block[0]
    out.place = place


cdef inline void class_of(size_t nbytes, int *top, int *sub) noexcept nogil:
    cdef size_t units = nbytes >> UNIT_BITS
    cdef int bit
    if units < SUBS:
        top[0] = 0
        sub[0] = <int>units
    else:
        bit = ndx_highest_bit(units)
        top[0] = bit - SUB_BITS + 1
        sub[0] = <int>(units >> (bit - SUB_BITS)) & (SUBS - 1)


cdef inline void index_insert(PoolIndex *index, PoolBlock *block) noexcept nogil:
    cdef int top = 0, sub = 0
    cdef PoolBlock *head
    class_of(block.nbytes, &top, &sub)
    head = index.heads[top][sub]
    block.prev_free = NULL
    block.next_free = head
    if head != NULL:
        head.prev_free = block
    else:
        index.tops |= <uint64_t>1 << top
        index.subs[top] |= <uint32_t>1 << sub
    index.heads[top][sub] = block


cdef inline void index_remove(PoolIndex *index, PoolBlock *block) noexcept nogil:
    cdef int top = 0, sub = 0
    if block.next_free != NULL:
        block.next_free.prev_free = block.prev_free
    if block.prev_free != NULL:
        block.prev_free.next_free = block.next_free
        return
    class_of(block.nbytes, &top, &sub)
    index.heads[top][sub] = block.next_free
    if block.next_free == NULL:
        index.subs[top] &= ~(<uint32_t>1 << sub)
        if index.subs[top] == 0:
            index.tops &= ~(<uint64_t>1 << top)


cdef inline PoolBlock *best_of(PoolBlock *block, size_t nbytes) noexcept nogil:
    """Return the smallest fit among the first `SCAN` blocks of a list, or NULL."""
    cdef PoolBlock *best = NULL
    cdef int looked = 0
    while block != NULL and looked < SCAN:
        if block.nbytes >= nbytes and (best == NULL or block.nbytes < best.nbytes):
            best = block
            if block.nbytes == nbytes:
                break
        block = block.next_free
        looked += 1
    return best


cdef inline PoolBlock *index_search(PoolIndex *index, size_t nbytes) noexcept nogil:
    """Return a block of at least nbytes that is a close fit, or NULL."""
    cdef int top = 0, sub = 0
    cdef uint32_t subs
    cdef uint64_t tops
    cdef PoolBlock *found
    class_of(nbytes, &top, &sub)
    # The request's own class first: the block that was freed there last usually has the
    # same size. All blocks of higher classes fit.
    found = best_of(index.heads[top][sub], nbytes)
    if found != NULL:
        return found
    subs = index.subs[top] & <uint32_t>(~((<uint64_t>2 << sub) - 1))
    if subs == 0:
        tops = index.tops & ~((<uint64_t>2 << top) - 1)
        if tops == 0:
            return NULL
        top = ndx_lowest_bit(tops)
        subs = index.subs[top]
    return best_of(index.heads[top][ndx_lowest_bit(subs)], nbytes)


cdef inline PoolBlock *index_search_exact(PoolIndex *index,
                                          size_t nbytes) noexcept nogil:
    """Return the block of exactly this size that was freed last, or NULL."""
    cdef int top = 0, sub = 0
    cdef PoolBlock *block
    class_of(nbytes, &top, &sub)
    block = index.heads[top][sub]
    while block != NULL and block.nbytes != nbytes:
        block = block.next_free
    return block

"""A bitmap of the ranges of a chunk that are in use, so that no two blocks overlap.

A check, a mark or a search costs a word for each 64 granules. A granule is a line
(64 bytes) up to chunks of 64 MiB, and more above, so that there are at most 2**20.
Offsets and sizes are in bytes; ranges are widened to whole granules.
"""

from cpython.mem cimport PyMem_RawFree, PyMem_RawRealloc
from libc.stdint cimport uint64_t
from libc.string cimport memset

from ndx.backends.base cimport ALIGNMENT

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

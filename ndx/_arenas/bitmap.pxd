from libc.stdint cimport uint64_t

# The granules of a chunk that are in use: one bit each.
cdef struct Bitmap:
    uint64_t *words
    size_t nbits
    size_t capacity          # words
    size_t granule           # bytes per bit

cdef size_t granule_of(size_t nbytes) noexcept nogil
cdef int bitmap_reset(Bitmap *bitmap, size_t nbytes) except -1
cdef void bitmap_free(Bitmap *bitmap) noexcept
cdef bint is_free(const Bitmap *bitmap, size_t low, size_t high) noexcept nogil
cdef void take(Bitmap *bitmap, size_t low, size_t high) noexcept nogil
cdef void give(Bitmap *bitmap, size_t low, size_t high) noexcept nogil
cdef Py_ssize_t find(const Bitmap *bitmap, size_t nbytes,
                     size_t start) noexcept nogil

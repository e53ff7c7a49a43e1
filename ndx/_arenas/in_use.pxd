from ndx._arenas.arena cimport Arena

# A range of a chunk: the offsets [low, high).
cdef struct Range:
    size_t low
    size_t high

cdef Py_ssize_t count_pinned(Arena arena) noexcept
cdef Py_ssize_t find_pinned(Arena arena, Range *out) noexcept
cdef size_t pinned_bytes(Arena arena) noexcept

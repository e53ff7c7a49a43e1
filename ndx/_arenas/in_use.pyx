"""The ranges of an arena that past cycles still use."""

from ndx._arenas.arena cimport Arena, lines
from ndx._blocks.block cimport Block, Export, block_memory
from ndx._lib.sizing cimport ndx_round_down


cdef Py_ssize_t count_pinned(Arena arena) noexcept:
    """Return how many ranges `find_pinned` finds at most."""
    cdef Py_ssize_t count = 0
    cdef Block *block = arena.pinned.next
    cdef Export *export
    while block != &arena.pinned:
        count += 1
        export = block.exports
        while export != NULL:
            count += 1
            export = export.next
        block = block.next
    return count


cdef Py_ssize_t find_pinned(Arena arena, Range *out) noexcept:
    """List the ranges of the chunk that blocks of past cycles need, as offsets."""
    cdef Py_ssize_t count = 0
    cdef Block *block = arena.pinned.next
    cdef Export *export
    cdef size_t base
    while block != &arena.pinned:
        # Spilled blocks have memory of their own.
        if arena.holds(block):
            base = block.ptr - arena.chunk.ptr
            if block.pins > 0 or block.kept:
                out[count].low = base
                out[count].high = base + lines(arena, block.nbytes)
                count += 1
            else:
                export = block.exports
                while export != NULL:
                    if export.high > export.low:
                        out[count].low = base + ndx_round_down(export.low, arena.line)
                        out[count].high = base + lines(arena, export.high)
                        count += 1
                    export = export.next
        block = block.next
    return count


cdef size_t pinned_bytes(Arena arena) noexcept:
    """Return the bytes of past cycles that foreign code or escaped arrays use."""
    cdef size_t total = 0
    cdef Block *block = arena.pinned.next
    cdef Export *export
    while block != &arena.pinned:
        if block.pins > 0 or block.kept or not arena.holds(block):
            total += lines(arena, block.nbytes) - block_memory(block).purged
        else:
            export = block.exports
            while export != NULL:
                total += lines(arena, export.high) - ndx_round_down(
                    export.low, arena.line)
                export = export.next
        block = block.next
    return total

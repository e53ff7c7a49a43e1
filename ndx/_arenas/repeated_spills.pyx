"""A warning of workspaces whose arenas are too small for each of their cycles."""

from libc.stdint cimport uint64_t

from ndx._arenas.sizing cimport LEARN_FIRST, Sizing
from ndx._lib.logs cimport log_warning

cdef enum:
    IN_A_ROW = 16                # cycles with spills, before the warning
    NAMES = 256                  # names of workspaces that are kept

cdef dict runs = {}              # by name: (last cycle that spilled, how many in a row)


cdef void note_first_spill(str name, uint64_t cycle, Sizing sizing, size_t size,
                           size_t most) noexcept:
    """Take note of a cycle that spills, if the first one has set the size for good.

    `most` is the largest need of a cycle so far.
    """
    if size == 0 or sizing.initial or sizing.grows or sizing.learn != LEARN_FIRST:
        return
    found = runs.get(name)
    if found is None:
        if len(runs) < NAMES:
            runs[name] = (cycle, 1)
        return
    last, count = found
    if count == IN_A_ROW:
        return
    count = count + 1 if cycle == last + 1 else 1
    runs[name] = (cycle, count)
    if count == IN_A_ROW:
        log_warning(
            "workspace %r has spilled in %d cycles in a row: its arena has the size of "
            "its first cycle, %d bytes, and a cycle needs up to %d. Give it a size=, "
            "or let it grow: spill='grow'", (name, count, size, most))

"""Counters of an arena: the bytes of its cycles, spills and escapes."""

cdef struct CycleCounts:
    # Counts of this cycle. Between cycles, spilled and live counts are those of the
    # last.
    size_t cycle_bytes           # requested, in whole lines
    size_t live_bytes            # of blocks that are referenced
    size_t spilled_count
    size_t spilled_bytes
    # Since the arena was made, or last destroyed:
    size_t last_cycle_bytes
    size_t max_cycle_bytes
    size_t peak_live_bytes
    # Since the first cycle:
    size_t cycles                # finished ones
    size_t total_spills
    size_t escaped_count         # blocks that were moved out at the end of a cycle
    size_t escaped_bytes
    size_t departures            # from a plan
    # At present:
    size_t retired_bytes         # of outgrown chunks that are still in use

cdef inline void counts_begin(CycleCounts *counts) noexcept:
    counts.cycle_bytes = counts.live_bytes = 0
    counts.spilled_count = counts.spilled_bytes = 0

cdef inline void counts_finish(CycleCounts *counts) noexcept:
    counts.cycles += 1
    counts.last_cycle_bytes = counts.cycle_bytes
    if counts.cycle_bytes > counts.max_cycle_bytes:
        counts.max_cycle_bytes = counts.cycle_bytes

cdef inline void counts_reset(CycleCounts *counts) noexcept:
    """Reset the sizes of cycles, as in a new arena; keep totals."""
    counts_begin(counts)
    counts.last_cycle_bytes = counts.max_cycle_bytes = counts.peak_live_bytes = 0

cdef inline void counts_made(CycleCounts *counts, size_t nbytes) noexcept:
    counts.cycle_bytes += nbytes
    counts.live_bytes += nbytes
    if counts.live_bytes > counts.peak_live_bytes:
        counts.peak_live_bytes = counts.live_bytes

cdef inline void counts_spilled(CycleCounts *counts, size_t nbytes) noexcept:
    counts.spilled_count += 1
    counts.spilled_bytes += nbytes
    counts.total_spills += 1

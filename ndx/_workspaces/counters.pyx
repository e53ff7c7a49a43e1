"""The counters of a workspace's arenas, summed in one dict."""

from ndx._arenas.arena cimport Arena
from ndx._arenas.in_use cimport pinned_bytes
from ndx._workspaces.slots cimport Slots

# Sums over all arenas, and their mirrors for what is still in use of past cycles.
cdef tuple KEPT = ("retired_bytes", "escaped_count", "escaped_bytes")
cdef tuple SUMS = ("cycles", "total_spills", "departures", *KEPT)


cdef dict counters_of(Slots slots, bint is_open):
    """Return the counters of all arenas, and those of the current or last cycle."""
    cdef Arena arena, now = slots.current()
    cdef dict counts = {}, total = dict.fromkeys(
        ("size", "mirror_bytes", "pinned_count", "pinned_bytes", *SUMS), 0)
    total.update(slots.past)
    last = greatest = peak = 0
    for arena in slots.all():
        counts = arena.counts
        total["size"] += arena.size
        greatest = max(greatest, counts["max_cycle_bytes"])
        peak = max(peak, counts["peak_live_bytes"])
        add(total, arena, SUMS)
        if arena.mirror is not None:
            total["mirror_bytes"] += arena.mirror.size
            add(total, arena.mirror, KEPT)
    counts = {}
    if now is not None:
        counts = now.counts
        last = counts["last_cycle_bytes"]
        if is_open and slots.ring:
            arena = slots.now.arenas[(slots.now.turn or slots.count) - 1]
            last = arena.counts.last_cycle_bytes
    return {
        "size": total["size"],
        "mirror_bytes": total["mirror_bytes"],
        "offset": 0 if now is None else now.offset,
        "slot": slots.now.turn,
        "cycles": total["cycles"],
        "generation": 0 if now is None else now.clock.now,
        "cycle_bytes": counts.get("cycle_bytes", 0),
        "last_cycle_bytes": last,
        "max_cycle_bytes": greatest,
        "live_bytes": counts.get("live_bytes", 0),
        "peak_live_bytes": peak,
        "spilled_count": counts.get("spilled_count", 0),
        "spilled_bytes": counts.get("spilled_bytes", 0),
        **{key: total[key] for key in (
            "total_spills", "pinned_count", "pinned_bytes", "retired_bytes",
            "escaped_count", "escaped_bytes", "departures")},
    }


cdef int add(dict total, Arena arena, tuple keys) except -1:
    """Add some of an arena's counts, and what is still in use of its past cycles."""
    cdef dict counts = arena.counts
    for key in keys:
        total[key] += counts[key]
    total["pinned_count"] += arena.pinned_count
    total["pinned_bytes"] += pinned_bytes(arena)
    return 0

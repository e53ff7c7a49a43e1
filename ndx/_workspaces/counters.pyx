"""What the arenas of a workspace have counted, in one dict."""

from ndx._arenas.arena cimport Arena
from ndx._workspaces.slots cimport Slots


cdef dict counters_of(Slots slots, bint is_open):
    """Return the counters of all arenas, and those of the current or last cycle."""
    cdef Arena arena, now = slots.current()
    total = dict.fromkeys(
        ("size", "mirror_bytes", "cycles", "total_spills", "pinned_count",
         "pinned_bytes", "retired_bytes", "escaped_count", "escaped_bytes",
         "departures"), 0)
    total.update(slots.past)
    last = greatest = peak = 0
    for arena in slots.all():
        total["size"] += arena.size
        total["cycles"] += arena.cycles
        total["total_spills"] += arena.total_spills
        total["departures"] += arena.departures
        greatest = max(greatest, arena.max_cycle_bytes)
        peak = max(peak, arena.peak_live_bytes)
        add_kept(total, arena)
        if arena.twin is not None:
            total["mirror_bytes"] += arena.twin.size
            add_kept(total, arena.twin)
    if now is not None:
        last = now.last_cycle_bytes
        if is_open and slots.ring:
            arena = slots.now.arenas[(slots.now.turn or slots.count) - 1]
            last = arena.last_cycle_bytes
    return {
        "size": total["size"],
        "mirror_bytes": total["mirror_bytes"],
        "offset": 0 if now is None else now.offset,
        "slot": slots.now.turn,
        "cycles": total["cycles"],
        "generation": 0 if now is None else now.clock.now,
        "cycle_bytes": 0 if now is None else now.cycle_bytes,
        "last_cycle_bytes": last,
        "max_cycle_bytes": greatest,
        "live_bytes": 0 if now is None else now.live_bytes,
        "peak_live_bytes": peak,
        "spilled_count": 0 if now is None else now.spilled_count,
        "spilled_bytes": 0 if now is None else now.spilled_bytes,
        **{key: total[key] for key in (
            "total_spills", "pinned_count", "pinned_bytes", "retired_bytes",
            "escaped_count", "escaped_bytes", "departures")},
    }


cdef int add_kept(dict total, Arena arena) except -1:
    """Add what is still in use of past cycles."""
    total["pinned_count"] += arena.pinned_count
    total["pinned_bytes"] += arena.pinned_bytes
    total["retired_bytes"] += arena.retired_bytes
    total["escaped_count"] += arena.escaped_count
    total["escaped_bytes"] += arena.escaped_bytes
    return 0

"""Traces of allocations: lists of (id, bytes, stream), bytes None for a release.

Seeds 0 to 3 of each kind are for tuning; those of `JUDGING` are for judging only, and
were fixed before they were first run. If a judging seed has influenced a rule of the
pool, a new one replaces it (docs/pool.md).
"""

import random

__all__ = ["GENERATORS", "JUDGING", "TUNING", "recorded"]

MIB = 2**20
TUNING, JUDGING = range(4), (1009, 1013, 1019, 1021)


def power_law(rng, steps=4000):
    """Sizes from a power law, with limited lifetimes."""
    live, trace = [], []
    for number in range(steps):
        if live and (rng.random() < 0.5 or len(live) > 150):
            trace.append((live.pop(rng.randrange(len(live))), None, 0))
        else:
            nbytes = min(int(256 * rng.paretovariate(0.55)), 64 * MIB)
            trace.append((number, nbytes, 0))
            live.append(number)
    return trace


def growing_batches(rng, batches=60):
    """A model whose batches grow: each temporary is a little larger than before."""
    trace, number = [], 0
    widths = [rng.randrange(64, 4096) for _ in range(8)]
    kept = []
    for width in widths:
        trace.append((number, 8 * width * 512, 0))
        kept.append(number)
        number += 1
    for batch in range(batches):
        rows = 32 + 8 * batch + rng.randrange(8)
        alive = []
        for width in widths:
            trace.append((number, 8 * rows * width, 0))
            alive.append(number)
            number += 1
            if len(alive) > 3:
                trace.append((alive.pop(0), None, 0))
        trace += [(each, None, 0) for each in alive]
    return trace


def long_lived_pins(rng, steps=3000):
    """Large temporaries, and small results between them that stay."""
    trace, live, pins = [], [], []
    for number in range(steps):
        kind = rng.random()
        if kind < 0.08:
            trace.append((number, rng.randrange(256, 20_000), 0))
            pins.append(number)
            if len(pins) > 120:
                trace.append((pins.pop(rng.randrange(len(pins))), None, 0))
        elif kind < 0.55 or not live:
            trace.append((number, rng.randrange(100_000, 12 * MIB), 0))
            live.append(number)
            if len(live) > 12:
                trace.append((live.pop(0), None, 0))
        else:
            trace.append((live.pop(rng.randrange(len(live))), None, 0))
    return trace


def many_streams(rng, steps=3000):
    """Eight streams that each work for a while, with memory of their own."""
    trace, live = [], {stream: [] for stream in range(8)}
    for number in range(steps):
        stream = number // 200 % 8
        mine = live[stream]
        if mine and (rng.random() < 0.5 or len(mine) > 20):
            trace.append((mine.pop(rng.randrange(len(mine))), None, stream))
        else:
            nbytes = int(rng.choice([2**12, 2**16, 2**20, 2**22]) * (1 + rng.random()))
            trace.append((number, nbytes, stream))
            mine.append(number)
    return trace


GENERATORS = {f.__name__: f for f in (
    power_law, growing_batches, long_lived_pins, many_streams)}  # fmt: skip


def generate(kind, seed):
    """Return the trace of a kind and a seed; it never changes."""
    return GENERATORS[kind](random.Random(f"{kind}-{seed}"))


def recorded(program):
    """Return the trace of the allocations of `program()` from the host backend."""
    import ndx

    trace, ids = [], {}

    def note(action, nbytes, address):
        if action == "allocate":
            ids[address] = len(trace)
            trace.append((len(trace), nbytes, 0))
        else:
            trace.append((ids.pop(address), None, 0))

    backend = ndx.backends.HostBackend()
    backend.add_hook(note)
    with ndx.use(backend):
        program()
    backend.remove_hook(note)
    return trace

"""Time epochs with and without `ndx.prefetch`, for sources as slow as the step.

    python benchmarks/prefetch.py [--quick] [--json] [--check]

Epochs without and with prefetching alternate, so that disturbances affect both. A row
shows the median time of each, and the median of the ratios of neighbours, prefetched /
plain. A source that takes as long as the step could be hidden completely: 0.5. What the
machine allows at that moment is the column `limit`: the same ratio for two threads that
have nothing to do with each other, one with all steps of the source, one with all steps
of the consumer. The step is ndx's, in a workspace, on one thread. The sources are

- waiting: it sleeps, as for a disk or a network, and then copies an array;
- NumPy: it computes, and releases the GIL;
- files: it reads files (from the system's cache) and computes on them;
- Python: it holds the GIL, so that there is nothing to gain.

``--check`` exits with 1 if a ratio misses its target.
"""

import argparse
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

import ndx

SIZE = 200_000
ROUNDS = 5
# Of the arrays that a source computes on.
PARTS = 20
TARGET = 0.6


class Row(NamedTuple):
    """One measured source; milliseconds of an epoch."""

    source: str
    plain_ms: float
    prefetched_ms: float
    ratio: float
    limit: float
    target: float | None
    spilled_batches: int
    system_allocations: int

    @property
    def met(self):
        """Whether the target is met; None without one."""
        return None if self.target is None else self.ratio <= self.target


class Batches:
    """A source that can be iterated again, whose steps are calls of a function."""

    def __init__(self, make, number):
        self.make, self.number = make, number

    def __len__(self):
        return self.number

    def __iter__(self):
        return map(self.make, range(self.number))


def step(x):
    """Compute on a batch, mostly in the cache; about 10 ms."""
    total = 0.0
    with ndx.workspace("step"):
        x = ndx.asarray(x)
        for _ in range(ROUNDS):
            y = ndx.exp(-x * x)
            total += float(ndx.sum(ndx.sin(y) / (y + 1)))
    return total


def seconds(function, *args):
    """Return the median time of a call."""
    times = []
    for _ in range(15):
        start = time.perf_counter()
        function(*args)
        times.append(time.perf_counter() - start)
    return median(times)


def tuned(make, wanted):
    """Return `make(i, count)` with the count whose calls take so many seconds."""
    count = 8
    for _ in range(4):
        took = seconds(make, 0, count)
        count = max(1, round(count * wanted / took))
    return lambda i: make(i, count)


def sources(wanted, folder):
    """Return the sources by name, and their targets."""
    data = np.random.default_rng(0).normal(size=SIZE)
    np.save(folder / "data.npy", data)

    def waiting(i):
        time.sleep(wanted)
        return data

    def work(result, count):
        # In parts, so that its length can be tuned.
        parts = np.array_split(result, PARTS)
        for k in range(count):
            part = parts[k % PARTS]
            np.exp(-np.abs(part), out=part)
        return result

    def compute(i, count):
        return work(data + i, count)

    def read(i, count):
        return work(np.load(folder / "data.npy"), count)

    def interpret(i, count):
        total = 0
        for k in range(100 * count):
            total += k
        return data

    return {
        "waiting": (waiting, TARGET),
        "NumPy": (tuned(compute, wanted), TARGET),
        "files": (tuned(read, wanted), TARGET),
        "Python": (tuned(interpret, wanted), None),
    }


def epoch(batches):
    """Return the seconds that an epoch takes, and its sum."""
    start = time.perf_counter()
    total = 0.0
    for x in batches:
        total += step(x)
    return time.perf_counter() - start, total


def apart(batches):
    """Return the seconds that the source and the steps take, each in a thread."""
    x = next(iter(batches))

    def consume():
        for _ in range(len(batches)):
            step(x)

    start = time.perf_counter()
    consumer = threading.Thread(target=consume)
    consumer.start()
    for _ in batches:
        pass
    consumer.join()
    return time.perf_counter() - start


def measure(name, make, target, number, repeats):
    """Return the row of a source."""
    plain = Batches(make, number)
    with ndx.prefetch(plain, depth=4) as ahead:
        times = []
        for repeat in range(repeats + 1):
            first, second = epoch(plain), epoch(ahead)
            if first[1] != second[1]:
                raise SystemExit(f"{name}: {second[1]} with prefetch, not {first[1]}")
            if repeat:
                times.append((first[0], second[0], apart(plain)))
            else:
                # The first epochs learn sizes.
                before = ndx.memory.stats("host")["system_allocations"]
        allocations = ndx.memory.stats("host")["system_allocations"] - before
        spilled = ahead.stats()["spilled_batches"]
    return Row(
        name,
        1e3 * median(a for a, _, _ in times),
        1e3 * median(b for _, b, _ in times),
        median(b / a for a, b, _ in times),
        median(c / a for a, _, c in times),
        target,
        spilled,
        allocations,
    )


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer, shorter epochs")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--check", action="store_true", help="fail at a missed target")
    options = parser.parse_args(arguments)
    number, repeats = (20, 3) if options.quick else (60, 9)
    ndx.set_num_threads(1)
    x = np.random.default_rng(0).normal(size=SIZE)
    wanted = seconds(step, x)
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            measure(name, make, target, number, repeats)
            for name, (make, target) in sources(wanted, Path(folder)).items()
        ]
    if options.json:
        print(
            json.dumps({"step_ms": 1e3 * wanted, "rows": [r._asdict() for r in rows]})
        )
    else:
        print(f"{number} steps of {1e3 * wanted:.1f} ms, {os.cpu_count()} CPUs")
        print(
            f"{'source':10}{'plain ms':>10}{'ahead ms':>10}{'ratio':>8}{'limit':>8}"
            f"{'target':>8}"
        )
        for row in rows:
            goal = f"{row.target:8.2f}" if row.target else " " * 8
            missed = "  missed" if row.met is False else ""
            print(
                f"{row.source:10}{row.plain_ms:10.1f}{row.prefetched_ms:10.1f}"
                f"{row.ratio:8.2f}{row.limit:8.2f}{goal}{missed}"
            )
    return int(options.check and any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())

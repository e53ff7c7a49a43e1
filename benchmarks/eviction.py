"""A working set that shifts, of arrays that are together larger than the limit.

    python benchmarks/eviction.py [--limit 256MiB] [--times 4] [--check]

The arrays, of 8 MiB each, are made first. Then phase after phase updates a part of
them, of three quarters of the limit, many times: each phase has a part of its own. The
limit of fast memory is the same for all: with ``evict="mmap"`` the arrays that were not
used for longest are in files; with ``fallback="mmap"`` those that were made last;
*swap* has no limit, and leaves it to the system which pages leave (only where there is
swap; the others have none). Each is a process of its own, in a control group with half
as much memory again as the limit, which the system's cache of files shares. They take
turns; the table has medians of the repeats.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from control_groups import Unable, control_group, join, read

import ndx
from ndx._lib.sizes import format_size, parse_size

ARRAY = 8 * 2**20
LEAST = {"fallback": 2.0, "swap": None}


def options_of(name, limit, directory):
    """Return the options of the backend of a way."""
    if name == "swap":
        return {}
    files = ndx.backends.get("mmap", directory=directory)
    return {"limit": limit, name: files}


def run(name, limit, times, phases, rounds, directory):
    """Return the seconds of each phase."""
    with ndx.use("host", **options_of(name, limit, directory)):
        arrays = [ndx.full(ARRAY // 8, float(i)) for i in range(times * limit // ARRAY)]
        part = 3 * limit // 4 // ARRAY
        seconds = []
        for phase in range(phases):
            # From the last ones backwards: these were made last.
            first = (len(arrays) - part * (phase + 1)) % len(arrays)
            chosen = [arrays[(first + i) % len(arrays)] for i in range(part)]
            start = time.perf_counter()
            for _ in range(rounds):
                for x in chosen:
                    x += 1
            seconds.append(time.perf_counter() - start)
        used = [0] * len(arrays)
        for phase in range(phases):
            first = (len(arrays) - part * (phase + 1)) % len(arrays)
            for i in range(part):
                used[(first + i) % len(arrays)] += rounds
        for i, x in enumerate(arrays):
            if float(x[-1]) != i + used[i]:
                raise SystemExit(f"{name}: array {i} is wrong")
    return seconds


def measure(name, options, group):
    """Run one way in a process of its own; return the seconds of its phases."""
    Path("/proc/sys/vm/drop_caches").write_text("3")
    done = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--way", name, str(group)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{name} failed ({done.returncode}): {done.stderr.strip()}")
    return json.loads(done.stdout)


def compare(options, ways):
    """Return the seconds of all phases of each way, for each repeat."""
    found = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, runs in found.items():
            memory = options.limit * 3 // 2 + 64 * 2**20
            with control_group(memory, swap=name == "swap") as group:
                runs.append(measure(name, options, group))
    return found


def parse_args(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--limit", type=parse_size, default="256MiB", help="bytes of fast memory")
    add("--times", type=int, default=4, help="bytes of all arrays, in limits")
    add("--phases", type=int, default=8)
    add("--rounds", type=int, default=30, help="updates of each array in a phase")
    add("--repeats", type=int, default=3)
    add("--directory", default=tempfile.gettempdir(), help="for the files")
    add("--check", action="store_true", help="fail if a target is missed")
    add("--way", nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(argv)


def main(argv=None):
    """Print the table; return the exit code."""
    options = parse_args(argv)
    if options.way:
        name, group = options.way
        join(Path(group))
        print(json.dumps(run(name, options.limit, options.times, options.phases,
                             options.rounds, options.directory)))  # fmt: skip
        return 0
    swaps = len(read(Path("/proc/swaps")).splitlines()) > 1
    ways = ["evict", "fallback"] + ["swap"] * swaps
    try:
        found = compare(options, ways)
    except Unable as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    print(
        f"limit {format_size(options.limit)}, arrays of {options.times} times that, "
        f"{options.phases} phases of {options.rounds} updates, medians of "
        f"{options.repeats}\n"
    )
    print(f"{'':<12}{'seconds':>9}{'slowest phase':>15}{'evict is':>12}")
    missed = False
    for name, runs in found.items():
        pairs = zip(runs, found["evict"], strict=True)
        ratio = median(sum(a) / sum(b) for a, b in pairs)
        print(f"{name:<12}{median(map(sum, runs)):>9.2f}{median(map(max, runs)):>15.2f}"
              f"{ratio:>10.2f} x")  # fmt: skip
        missed |= ratio < (LEAST.get(name) or 0)
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())

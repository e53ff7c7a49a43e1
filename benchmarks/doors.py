"""What a turn of the program in docs/which_door.md costs, by each way of that page.

``python benchmarks/doors.py [--repeats 5]`` prints medians of processes that alternate:
the time of a turn, its page faults, and the bytes of the workspace's arena. Each runs
the examples of the page up to its own.
"""

import argparse
import contextlib
import io
import json
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

PAGE = Path(__file__).parents[1] / "docs/which_door.md"
FENCE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
RUN = ("-m", "ndx", "run", "--limit", "2GiB", "--fallback", "mmap")
# By name: options of Python, and how many examples of the page are run before.
DOORS = {
    "NumPy": ((), 1),
    "1 ndx run": (RUN, 1),
    "2 import ndx.numpy as np": ((), 2),
    '3 workspace, escape="detach"': ((), 3),
    "4 workspace, x.detach()": ((), 4),
    "5 ndx.fuse": ((), 5),
    "6 import ndx as np": ((), 6),
}
TURNS = {30: 1000, 300: 100}  # by the number of vortices
HEAD = "  faults      arena"


def measure(examples, count):
    """Return the cost of a turn, in this process."""
    names = {"__name__": "program"}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in FENCE.findall(PAGE.read_text())[:examples]:
            exec(code, names)
    if examples > 2:  # with a workspace, sized for the example
        names["ndx"].memory.destroy_all()
    names["simulate"](5, count)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    begin = time.perf_counter()
    names["simulate"](TURNS[count], count)
    seconds = time.perf_counter() - begin
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
    arenas = names["ndx"].memory.workspaces() if examples > 2 else ()
    return {
        "time": 1e6 * seconds / TURNS[count],
        "faults": faults / TURNS[count],
        "arena": sum(ws.size for ws in arenas),
    }


def measure_apart(door, count):
    """Return the cost of a turn, in a new process."""
    options, examples = DOORS[door]
    command = [sys.executable, *options, __file__, "--one", str(examples), str(count)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.one:
        print(json.dumps(measure(*options.one)))
        return
    rows = {door: {count: [] for count in TURNS} for door in DOORS}
    for _ in range(options.repeats):
        for door, columns in rows.items():
            for count, found in columns.items():
                found.append(measure_apart(door, count))
    print(" " * 30 + "".join(f"{f'{count} vortices':>16}{HEAD}" for count in TURNS))
    for door, columns in rows.items():
        line = f"{door:30}"
        for found in columns.values():
            time_, faults, arena = (median(each[k] for each in found) for k in found[0])
            line += f"{time_:13.1f} us{faults:8.0f}{arena / 1024:7.0f} KiB"
        print(line)


if __name__ == "__main__":
    main()

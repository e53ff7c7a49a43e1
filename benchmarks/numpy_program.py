"""A plain NumPy program that needs more memory than its control group has.

    python benchmarks/numpy_program.py [--memory 1GiB] [--walks 393216] [--check]

The program is `examples/random_walks.py`, which needs 3 GiB. It runs without a bound,
and in a control group by itself and by ``python -m ndx run --fallback mmap``. The table
has the status of its process and, by the group's own counters, the peak of memory and
the processes that the system killed. What it prints ends with a digest of its arrays.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from control_groups import Unable, control_group, counters, join

from ndx._lib.sizes import format_size, parse_size

PROGRAM = Path(__file__).parents[1] / "examples" / "random_walks.py"
ALONE, BOUND, RUN = "python", "python, in the group", "ndx run, in the group"


def measure(command, group):
    """Run a program, in a group or (None) without; return a row of the table."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        preexec_fn=None if group is None else lambda: join(group),
        check=False,
    )
    peak, kills = (None, 0) if group is None else counters(group)
    return {
        "status": done.returncode,
        "peak": peak,
        "kills": kills,
        "seconds": time.perf_counter() - start,
        "output": done.stdout,
        "errors": done.stderr,
    }


def compare(options):
    """Return the rows of the table, by name."""
    program = (str(PROGRAM), "--walks", str(options.walks))
    spilling = ("--fallback", "mmap", "--directory", options.directory, "--report")
    rows = {ALONE: measure(program, None)}
    for name, command in (
        (BOUND, program),
        (RUN, ("-m", "ndx", "run", *spilling, *program)),
    ):
        with control_group(options.memory) as group:
            rows[name] = measure(command, group)
    return rows


def missed(rows):
    """Return what is not as it should be, as a list of text."""
    found = []
    if rows[ALONE]["status"]:
        found.append(f"the program fails: {rows[ALONE]['errors'].strip()}")
    if not rows[BOUND]["kills"]:
        found.append("the program alone was not killed in the group: it needs less")
    if rows[RUN]["status"] or rows[RUN]["kills"]:
        found.append(f"ndx run failed: {rows[RUN]['errors'].strip()}")
    if rows[RUN]["output"] != rows[ALONE]["output"]:
        found.append("ndx run printed other values")
    return found


def print_table(rows, options):
    print(rows[ALONE]["output"])
    print(f"a group of {format_size(options.memory)}\n")
    print(f"{'':<24}{'status':>8}{'peak':>12}{'killed':>8}{'seconds':>9}")
    for name, row in rows.items():
        peak = "-" if row["peak"] is None else format_size(row["peak"])
        print(
            f"{name:<24}{row['status']:>8}{peak:>12}{row['kills']:>8}"
            f"{row['seconds']:>9.1f}"
        )
    print(f"\n{rows[RUN]['errors'].strip()}")


def main(argv=None):
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    add = parser.add_argument
    add("--memory", type=parse_size, default="1GiB", help="bytes of the group")
    add("--walks", type=int, default=3 * 2**17, help="rows of the program's arrays")
    add("--directory", default="/var/tmp", help="for the files")
    add("--json", action="store_true", help="print the rows as JSON")
    add("--check", action="store_true", help="fail if something is not as it should be")
    options = parser.parse_args(argv)
    try:
        rows = compare(options)
    except Unable as reason:
        print(f"skipped: {reason}", file=sys.stderr)
        return 0
    if options.json:
        print(json.dumps(rows))
    else:
        print_table(rows, options)
    problems = missed(rows)
    for text in problems:
        print(text, file=sys.stderr)
    return int(options.check and bool(problems))


if __name__ == "__main__":
    sys.exit(main())

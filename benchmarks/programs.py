"""Time small NumPy programs with `ndx.numpy`, next to NumPy.

    python benchmarks/programs.py [--check] [NAME ...]

The programs (`benchmarks/program_cases.py`) loop over rows, elements and short slices.
They run in alternating batches. A row has the medians in milliseconds, and the median
of the ratios of neighbouring batches. ``--check`` exits with 1 if the geometric mean is
above 0.65, or a program above 1.05.
"""

import argparse
import math
import sys

import numpy as np
from program_cases import PROGRAMS
from timing import compile_loop, side_by_side

import ndx.numpy

MOST, MOST_OF_ONE = 0.65, 1.05


def main():
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    parser.add_argument("--check", action="store_true", help="fail above the targets")
    options = parser.parse_args()
    programs = {program.__name__: program for program in PROGRAMS}
    if unknown := sorted(set(options.names) - programs.keys()):
        parser.error(f"no program is named {', '.join(unknown)}")
    rows = []
    for name in options.names or programs:
        loops = [
            compile_loop("run(np, 1)", {"run": programs[name], "np": namespace})
            for namespace in (np, ndx.numpy)
        ]
        times = side_by_side(loops, 9, 2e7)
        rows.append((times.ratios[1], name, *times.ns))
    print(f"{'program':28}{'NumPy ms':>10}{'ndx ms':>10}{'ratio':>8}")
    for ratio, name, theirs, own in sorted(rows, reverse=True):
        print(f"{name:28}{theirs / 1e6:10.2f}{own / 1e6:10.2f}{ratio:8.2f}")
    mean = math.exp(sum(math.log(row[0]) for row in rows) / len(rows))
    print(f"geometric mean of {len(rows)} programs: {mean:.2f}")
    missed = mean > MOST or max(rows)[0] > MOST_OF_ONE
    return int(options.check and missed)


if __name__ == "__main__":
    sys.exit(main())

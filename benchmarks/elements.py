"""Time numbers (elements, and what is computed of them) against NumPy's scalars.

    python benchmarks/elements.py [--quick] [--check]

Each row is a call with NumPy's scalars and with numbers of ndx, in alternating batches:
the medians in nanoseconds, and the median of the ratios of neighbouring batches. The
last lines are the geometric mean of the ratios, and the resident bytes that a number
takes. ``--check`` exits with 1 if a ratio misses its target, or the mean is above 0.8.
"""

import argparse
import math
import sys

import numpy as np
from timing import compile_loop, side_by_side

import ndx
import ndx.numpy

MEAN = 0.8
MANY = 1_000_000

# Code -> the largest ratio that is wanted; `s`, `t` are float64, `i`, `j` int64.
ROWS = {
    "x[3]": 0.7,
    **dict.fromkeys(
        [
            "s * 2.0", "2.0 * s", "s + t", "s - 1", "s / t", "s ** 2", "s ** 0.5", "-s",
            "abs(s)", "s < t", "s < 2", "s == t", "bool(s < 2)", "1 if s < 2 else 0",
            "not s", "max(s, 0.3)", "float(s)", "hash(s)", "round(s)", "s.item()",
            "i + 1", "i * j", "i // 2", "i % 2 == 0", "i < 3", "i & 1", "int(i)",
            "range(i)", "items[i]", "s + i", "x[5] = s", "x[i]", "x * s",
            "xp.sqrt(s)", "xp.exp(s)", "f'{s}'",
        ],
        1.0,
    ),
    **dict.fromkeys(
        ["sum(x)", "max(x)", "for v in x: v * 2", "min(x[2], x[3]) + x[4]"], 0.9
    ),
}  # fmt: skip


def loops(code):
    """Return loops of the code with NumPy's scalars, and with numbers."""
    found = []
    for xp in (np, ndx.numpy):
        x, whole = xp.arange(1.0, 11.0), xp.arange(1, 11)
        values = {
            "xp": xp, "x": x, "s": x[3], "t": x[4], "i": whole[3], "j": whole[4],
            "items": list(range(10)),
        }  # fmt: skip
        found.append(compile_loop(code, values))
    return found


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def bytes_of_a_number():
    """Return the resident bytes of a number, without the list that holds it."""
    x = ndx.arange(float(MANY))
    kept = [None] * MANY
    before = resident()
    kept[:] = list(x)
    return (resident() - before) / MANY


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer, shorter batches")
    parser.add_argument(
        "--check", action="store_true", help="fail if a target is missed"
    )
    options = parser.parse_args()
    repeats, batch_ns = (5, 1e6) if options.quick else (21, 4e6)
    missed, ratios = [], []
    print(f"{'call':24} {'NumPy':>8} {'ndx':>8} {'ratio':>6}   wanted")
    for code, target in ROWS.items():
        times = side_by_side(loops(code), repeats, batch_ns)
        ratio = times.ratios[1]
        ratios.append(ratio)
        late = ratio > target
        print(
            f"{code:24} {times.ns[0]:8.1f} {times.ns[1]:8.1f} {ratio:6.2f}   "
            f"{target}{' missed' * late}"
        )
        missed += [code] * late
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.2f}, wanted {MEAN}")
    if sys.platform == "linux":
        print(f"a number takes {bytes_of_a_number():.0f} bytes")
    return 1 if options.check and (missed or mean > MEAN) else 0


if __name__ == "__main__":
    sys.exit(main())

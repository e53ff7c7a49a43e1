"""Time NumPy's face on small arrays against NumPy, call by call, in one run.

    python benchmarks/numpy_face.py [--quick] [--check]

Each row times one call with NumPy's arrays and one with NDArrays: NumPy's function by
the protocol, the function of `ndx.numpy`, or the method. Batches of the two alternate.
A row shows the medians of a call in nanoseconds, and the median of the ratios of
neighbouring batches. ``--check`` exits with 1 if a ratio misses its target.
"""

import argparse
import sys
import timeit
from statistics import median
from typing import NamedTuple

import numpy as np

import ndx
import ndx.numpy as face

BATCH = 20_000


class Row(NamedTuple):
    """A call: `np` in it is NumPy on both sides, `face` is `ndx.numpy` on ours."""

    code: str
    target: float | None = None


ROWS = [
    Row("np.sum(x)", 1.2),
    Row("x.sum()", 0.6),
    Row("face.add(x, y)", 0.6),
    Row("face.sum(x)"),
    Row("np.add(x, y)"),
    Row("np.exp(x)"),
    Row("x.mean()"),
    Row("x.max()"),
    Row("x.reshape(2, 5)"),
    Row("x.astype(int)"),
    Row("x.copy()"),
    Row("x.T"),
    Row("np.concatenate([x, y])"),
    Row("np.transpose(m)"),
    Row("np.where(b, x, y)"),
    Row("np.nanmean(x)"),
    Row("np.percentile(x, 50)"),
    Row("np.einsum('i,i', x, y)"),
    Row("np.linalg.solve(m, v)"),
    Row("face.zeros(10)"),
]


def timers(code):
    """Return a timer of a call with NumPy's arrays, and one with NDArrays."""
    rng = np.random.default_rng(0)
    values = {
        "x": rng.standard_normal(10),
        "y": rng.standard_normal(10),
        "m": rng.standard_normal((4, 4)),
        "v": rng.standard_normal(4),
        "b": rng.standard_normal(10) > 0,
    }
    ours = {name: ndx.asarray(value, copy=True) for name, value in values.items()}
    return [
        timeit.Timer(code, globals={**arrays, "np": np, "face": namespace})
        for arrays, namespace in ((values, np), (ours, face))
    ]


def measure(row, repeats, batch):
    """Return the nanoseconds of both calls, and the ratio."""
    pair = timers(row.code)
    for timer in pair:
        timer.timeit(batch // 10)
    found = [
        [timer.timeit(batch) / batch * 1e9 for timer in pair] for _ in range(repeats)
    ]
    theirs, ours = zip(*found, strict=True)
    return median(theirs), median(ours), median(o / t for t, o in found)


def main():
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repeats")
    parser.add_argument(
        "--check", action="store_true", help="fail if a target is missed"
    )
    options = parser.parse_args()
    repeats, batch = (7, BATCH // 10) if options.quick else (15, BATCH)
    missed = []
    print(f"{'call':26}{'NumPy ns':>10}{'ndx ns':>10}{'ratio':>8}{'target':>8}")
    for row in ROWS:
        theirs, ours, ratio = measure(row, repeats, batch)
        target = "" if row.target is None else f"{row.target:.2f}"
        print(f"{row.code:26}{theirs:10.0f}{ours:10.0f}{ratio:8.2f}{target:>8}")
        if row.target is not None and ratio > row.target:
            missed.append(row.code)
    if missed:
        print(f"missed: {', '.join(missed)}")
    return int(options.check and bool(missed))


if __name__ == "__main__":
    sys.exit(main())

"""The size of an arena planned by lifetimes, against the least possible size.

    python benchmarks/liveness.py [--repeats N] [--json] [--check]

For the training step of ``examples/train_digits.py`` (short last batches included)
and the time step of ``examples/heat_equation.py``, a row shows

- ``sum``: bytes of the arena of ``learn="first"``, the sum of a step's arrays;
- ``liveness``: bytes of the arena of ``learn="liveness"``;
- ``live``: the peak of live bytes of any step, each array rounded up to 64 B. No
  arena can be smaller. A backend in Python records it in a run without a workspace;
- the ratio liveness / live, and the bytes spilled after the first cycle.

``--check`` exits with 1 if a ratio is above 1.10.
"""

import argparse
import contextlib
import functools
import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import digits_network
import heat_solver
from digits_data import load_data

import ndx

TARGET = 1.10
LINE = 64


class Recorder(ndx.backends.PythonBackend):
    """A backend that follows the bytes of live arrays, in lines of 64 B.

    A call returns the context manager around a step.

    Attributes
    ----------
    births, deaths : int
        Arrays made in steps; deaths of all arrays.
    most : int
        The peak of bytes of any step, of arrays made in that step.
    """

    def __init__(self):
        super().__init__()
        self.name = "recorder"
        self.sizes = {}
        self.live = self.births = self.deaths = self.most = 0
        self.start = None
        # Requests include room for alignment, which is no part of the array.
        self.room = 0
        with ndx.use(self):
            ndx.empty(LINE, dtype="uint8")
        self.room = self.asked - LINE
        self.deaths = 0

    def acquire(self, nbytes):
        """Return a bytearray: an array is born."""
        buffer = bytearray(nbytes)
        self.asked = nbytes
        size = -(-(nbytes - self.room) // LINE) * LINE
        self.sizes[id(buffer)] = size
        self.live += size
        if self.start is not None:
            self.births += 1
            self.most = max(self.most, self.live - self.start)
        return buffer

    def discard(self, buffer):
        """Take a bytearray back: an array has died."""
        self.live -= self.sizes.pop(id(buffer))
        self.deaths += 1

    @contextlib.contextmanager
    def __call__(self):
        """Begin a step; older live arrays are no part of it."""
        self.start = self.live
        try:
            yield
        finally:
            self.start = None


class Result(NamedTuple):
    """One row, in bytes."""

    label: str
    sum: int
    liveness: int
    live: int
    spilled: int
    departures: int

    @property
    def ratio(self):
        """The arena's bytes, as a multiple of the live ones."""
        return self.liveness / self.live


def works():
    """Return functions that make a run, by label."""
    digits = load_data(0)
    training = functools.partial(digits_network.Training, digits=digits)
    return {
        "digits, 11 x 128 + 29": training,
        "digits, 14 x 100 + 37": functools.partial(training, batch_size=100),
        "heat, 129 x 129": functools.partial(
            heat_solver.Simulation, points=129, steps=10
        ),
        "heat, 50 x 50": functools.partial(heat_solver.Simulation, points=50, steps=10),
    }


class Steps:
    """A workspace around each step; counts the bytes spilled after the first."""

    def __init__(self, **policies):
        self.workspace = ndx.workspace(**policies)
        self.spilled = 0

    @contextlib.contextmanager
    def __call__(self):
        # The first step always spills: the arena is made at its end.
        first = self.workspace.stats()["cycles"] == 0
        with self.workspace:
            yield
        if not first:
            self.spilled += self.workspace.stats()["spilled_count"]


def in_workspace(make_run, repeats, **policies):
    """Return the `Steps` of a run in a workspace."""
    steps = Steps(**policies)
    run = make_run(ndx, steps)
    for _ in range(repeats):
        run.repeat()
    return steps


def record(make_run, repeats):
    """Return the `Recorder` of a run without a workspace."""
    recorder = Recorder()
    with ndx.use(recorder):
        run = make_run(ndx, recorder)
        for _ in range(repeats):
            run.repeat()
    return recorder


def measure(label, make_run, repeats):
    """Return the `Result` of one work."""
    first = in_workspace(make_run, repeats, learn="first", overallocation=0.0)
    planned = in_workspace(make_run, repeats, learn="liveness")
    return Result(
        label,
        first.workspace.size,
        planned.workspace.size,
        record(make_run, repeats).most,
        planned.spilled,
        planned.workspace.stats()["departures"],
    )


def show(results):
    """Print the table."""
    print(
        f"{'':<24}{'sum':>12}{'liveness':>12}{'live':>12}"
        f"{'ratio':>8}{'spilled':>9}{'departures':>12}"
    )
    for row in results:
        print(
            f"{row.label:<24}{row.sum:>12,}{row.liveness:>12,}{row.live:>12,}"
            f"{row.ratio:>8.3f}{row.spilled:>9}{row.departures:>12}"
        )


def main(argv=None):
    """Measure every row and print it; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Compare arenas planned by lifetimes with the bytes that are live."
    )
    parser.add_argument("--repeats", type=int, default=3, help="epochs, for the digits")
    parser.add_argument("--json", action="store_true", help="print JSON, no table")
    parser.add_argument(
        "--check", action="store_true", help=f"exit with 1 if a ratio is above {TARGET}"
    )
    args = parser.parse_args(argv)
    results = [measure(name, run, args.repeats) for name, run in works().items()]
    if args.json:
        rows = [row._asdict() | {"ratio": round(row.ratio, 4)} for row in results]
        print(json.dumps(rows, indent=2))
    else:
        show(results)
    missed = [row for row in results if not row.ratio <= TARGET]
    if args.check and missed:
        for row in missed:
            print(
                f"target missed: {row.label}: {row.ratio:.3f} > {TARGET}",
                file=sys.stderr,
            )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

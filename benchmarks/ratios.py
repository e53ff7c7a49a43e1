"""Time ndx against NumPy, operation by operation, in one run.

    python benchmarks/ratios.py [--quick] [--json] [--check]

For each operation, batches of NumPy calls and of ndx calls alternate, so that
disturbances affect both. A row shows the median time of a call
in each, and the median of the ratios of neighbouring batches, ndx / NumPy. The
loops that run the calls are the same in both; their cost is not subtracted.

(1) of an empty scope of a workspace, beside a ContextVar's set and reset;
(2) made and dropped in a workspace, beside NumPy's.

``--check`` exits with 1 if a ratio misses its target.
"""

import argparse
import contextvars
import json
import platform
import sys
from typing import NamedTuple

import numpy as np
from timing import compile_loop, names_in, side_by_side

import ndx

MILLION = 1_000_000
LARGE_TARGET = 1.05


class Case(NamedTuple):
    """One row: `code` is timed, in which `a`, `b`, `m` and `k` are names.

    `a` and `b` have `n` elements, `m` and `k` are `side` x `side` matrices. Where the
    two sides differ, `theirs` is what ndx is compared with; `variable` is a
    `ContextVar` in it, `ws` in `code` a workspace, and `hundred` a range.
    """

    code: str
    n: int = 10
    side: int = 10
    target: float | None = None
    theirs: str | None = None
    label: str | None = None

    @property
    def size(self):
        """The size as shown in the table."""
        if self.label:
            return ""
        if "empty(" in self.code:
            return self.code.partition("(")[2].rstrip(")")
        matrices = "m" in names_in(self.code)
        return f"{self.side}x{self.side}" if matrices else str(self.n)

    def side_of(self, xp):
        """Return the code that one of the two runs."""
        return self.theirs if self.theirs and xp is np else self.code


class Result(NamedTuple):
    """One measured row; times are nanoseconds per call."""

    case: Case
    numpy_ns: float
    ndx_ns: float
    ratio: float

    @property
    def met(self):
        """Whether the target is met; None without one."""
        return None if self.case.target is None else self.ratio <= self.case.target


def cases():
    """Return the rows of the table, in order."""
    small = {"a + b": 0.4, "exp(a)": 0.4, "sum(a)": 0.4, "a[3:7]": 0.8}
    rows = []
    for code, target in small.items():
        rows.append(Case(code, 10, target=target))
        rows.append(Case(code, 1_000))
        rows.append(Case(code, MILLION, target=LARGE_TARGET))
    rows.append(Case("empty(10)"))
    rows.append(Case("empty(1000)", target=0.7))
    rows.append(Case("empty(1000000)", target=LARGE_TARGET))
    for code in ("a * 2.0", "a += b", "a < b"):
        rows += [Case(code, n) for n in (10, 1_000, MILLION)]
    rows += [
        Case(
            "with ws: pass",
            target=3.0,
            theirs="variable.reset(variable.set(1))",
            label="enter + exit (1)",
        ),
        Case(
            "with ws:\n                for _ in hundred: empty(1000)",
            target=0.6,
            theirs="for _ in hundred: empty(1000)",
            label="100 empty(1000) in one (2)",
        ),
    ]
    rows += [Case("m @ k", side=side) for side in (10, 300)]
    for code in ("m.T + k", "m[:, 0]", "max(m, axis=0)", "m + k[0]"):
        rows += [Case(code, side=side) for side in (10, 1_000)]
    return rows


def loop_of(case, xp):
    """Return the function that runs and times the case with `xp`."""
    rng = np.random.default_rng(0)
    arrays = {
        "a": rng.standard_normal(case.n),
        "b": rng.standard_normal(case.n),
        "m": rng.standard_normal((case.side, case.side)),
        "k": rng.standard_normal((case.side, case.side)),
    }
    code = case.side_of(xp)
    values = {
        "ws": ndx.workspace(size="1MiB"),
        "variable": contextvars.ContextVar("variable", default=0),
        "hundred": range(100),
    }
    for name in names_in(code):
        if name in arrays:
            values[name] = xp.asarray(arrays[name], copy=True)
        elif hasattr(xp, name):
            values[name] = getattr(xp, name)
    return compile_loop(code, values)


def measure(case, repeats, batch_ns):
    """Return the `Result` of `case`, of `repeats` pairs of batches.

    A batch is as many calls as NumPy does in about `batch_ns`.
    """
    loops = [loop_of(case, np), loop_of(case, ndx)]
    times = side_by_side(loops, repeats, batch_ns)
    return Result(case, *times.ns, times.ratios[1])


def show_time(ns):
    """Return nanoseconds in a unit that suits them."""
    for unit, scale in (("ns", 1), ("us", 1_000), ("ms", 1_000_000)):
        if ns < 1_000 * scale or unit == "ms":
            return f"{ns / scale:.{0 if unit == 'ns' else 1}f} {unit}"
    return None


def show_row(result):
    """Print one line of the table."""
    case = result.case
    target = "" if case.target is None else f"<= {case.target:.2f}"
    verdict = {None: "", True: "ok", False: "MISSED"}[result.met]
    print(
        f"{case.label or case.code:<28}{case.size:>10}{show_time(result.numpy_ns):>12}"
        f"{show_time(result.ndx_ns):>12}{result.ratio:>8.2f}{target:>10}  {verdict}",
        flush=True,
    )


def as_json(results):
    """Return the results, and where they were measured, as JSON."""
    rows = [
        {
            "code": result.case.code,
            "label": result.case.label,
            "size": result.case.size,
            "numpy_ns": round(result.numpy_ns, 1),
            "ndx_ns": round(result.ndx_ns, 1),
            "ratio": round(result.ratio, 4),
            "target": result.case.target,
            "met": result.met,
        }
        for result in results
    ]
    about = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "ndx": getattr(ndx, "__version__", None),
        "machine": platform.machine(),
    }
    return json.dumps({"about": about, "rows": rows}, indent=2)


def main(argv=None):
    """Measure every row and print it; return the exit code."""
    parser = argparse.ArgumentParser(
        description="Time ndx against NumPy: float64, medians of interleaved repeats."
    )
    parser.add_argument("--quick", action="store_true", help="fewer, shorter repeats")
    parser.add_argument("--json", action="store_true", help="print JSON, no table")
    parser.add_argument(
        "--check", action="store_true", help="exit with 1 if a target is missed"
    )
    args = parser.parse_args(argv)
    repeats, batch_ns = (7, 2_000_000) if args.quick else (41, 10_000_000)

    if not args.json:
        print(
            f"{'operation':<28}{'size':>10}{'NumPy':>12}{'ndx':>12}"
            f"{'ratio':>8}{'target':>10}"
        )
    results = []
    for case in cases():
        results.append(measure(case, repeats, batch_ns))
        if not args.json:
            show_row(results[-1])
    if args.json:
        print(as_json(results))
    missed = [result for result in results if result.met is False]
    if args.check and missed:
        for result in missed:
            print(
                f"target missed: {result.case.code}, size {result.case.size}: "
                f"{result.ratio:.3f} > {result.case.target}",
                file=sys.stderr,
            )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

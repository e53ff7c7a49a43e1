"""Time fused expressions against NumPy, plain ndx and numexpr, in one run.

    python benchmarks/fused.py [--quick] [--check]

A row shows NumPy's median time of a call, and the medians of the ratios of neighbouring
batches to it: plain ndx, fused, and numexpr where it has the expression and is
installed. All sides use the same number of threads. ``--check`` exits with 1 if a ratio
misses its target.
"""

import argparse
import importlib.util
import sys
from typing import NamedTuple

import numpy as np
from timing import compile_loop, side_by_side

import ndx


def expression(a, b, c, d, e):
    """Five operands, four steps."""
    return a * b + c * d - e


def stencil_2d(u):
    """Return the inner points' five-point Laplacian, added to them."""
    inner = u[1:-1, 1:-1]
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    return inner + 0.1 * (around - 4.0 * inner)


def stencil_3d(u):
    """Return the inner points' seven-point Laplacian, added to them."""
    inner = u[1:-1, 1:-1, 1:-1]
    around = u[:-2, 1:-1, 1:-1] + u[2:, 1:-1, 1:-1] + u[1:-1, :-2, 1:-1]
    around = around + u[1:-1, 2:, 1:-1] + u[1:-1, 1:-1, :-2] + u[1:-1, 1:-1, 2:]
    return inner + 0.1 * (around - 6.0 * inner)


def distances(a, b):
    """Return the squared distances of points, which are rows."""
    return ((a - b) ** 2).sum(axis=-1)


def softmax(a):
    """Return each row's exponentials as shares of their sum."""
    powers = np.exp(a - a.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class Case(NamedTuple):
    """One row: a function, the shape of its operands, and the targets."""

    function: object
    shape: tuple[int, ...]
    plain: float | None = None
    fused: float | None = None
    numexpr: str | None = None


FORMULA = "a*b + c*d - e"
CASES = [
    *(Case(expression, (n,), numexpr=FORMULA) for n in (10, 1_000, 100_000)),
    Case(expression, (1_000_000,), 0.5, 0.25, FORMULA),
    *(Case(stencil_2d, (n, n), fused=0.35) for n in (50, 129, 1000)),
    *(Case(stencil_3d, (n, n, n), fused=0.35) for n in (34, 100)),
    *(Case(distances, shape) for shape in ((100, 100), (1000, 1000), (100_000, 3))),
    *(Case(softmax, shape) for shape in ((100, 10), (1000, 1000))),
]


def operands_of(case):
    """Return NumPy's operands: random numbers of the shape."""
    count = case.function.__code__.co_argcount
    rng = np.random.default_rng(0)
    return [rng.standard_normal(case.shape) for _ in range(count)]


def sides(case):
    """Return the names of the sides, and their timed loops."""
    theirs = operands_of(case)
    ours = [ndx.asarray(x, copy=True) for x in theirs]
    fused = ndx.fuse(case.function)
    expected = case.function(*theirs)
    np.testing.assert_allclose(np.asarray(fused(*ours)), expected, rtol=1e-12)
    names = [f"x{i}" for i in range(len(theirs))]
    code = f"f({', '.join(names)})"
    found = {
        "NumPy": compile_loop(
            code, {"f": case.function, **dict(zip(names, theirs, strict=True))}
        )
    }
    for name, function in (("plain", case.function), ("fused", fused)):
        values = {"f": function, **dict(zip(names, ours, strict=True))}
        found[name] = compile_loop(code, values)
    if case.numexpr and importlib.util.find_spec("numexpr"):
        import numexpr

        numexpr.set_num_threads(ndx.get_num_threads())
        there = dict(zip("abcde", theirs, strict=True))
        values = {"evaluate": numexpr.evaluate, "there": there}
        found["numexpr"] = compile_loop(f"evaluate({case.numexpr!r}, there)", values)
    return found


def missed(case, ratios):
    """Return the targets that a row misses, in words."""
    wanted = {"plain": case.plain, "fused": case.fused}
    found = [
        f"{name} {ratios[name]:.2f} > {limit:.2f}"
        for name, limit in wanted.items()
        if limit is not None and ratios[name] > limit
    ]
    if "numexpr" in ratios and ratios["fused"] > 0.9 * ratios["numexpr"]:
        found.append(f"fused is {ratios['fused'] / ratios['numexpr']:.2f} of numexpr")
    return found


def main(arguments=None):
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer, shorter batches")
    parser.add_argument("--check", action="store_true", help="fail at a missed target")
    options = parser.parse_args(arguments)
    repeats, batch_ns = (9, 2e6) if options.quick else (41, 1e7)
    print(f"{'':12}{'shape':>18}{'NumPy':>12}{'plain':>8}{'fused':>8}{'numexpr':>9}")
    failures = []
    for case in CASES:
        loops = sides(case)
        times = side_by_side(list(loops.values()), repeats, batch_ns)
        ratios = dict(zip(loops, times.ratios, strict=True))
        shape = " x ".join(map(str, case.shape))
        wrong = missed(case, ratios)
        failures += wrong
        numexpr = f"{ratios['numexpr']:9.2f}" if "numexpr" in ratios else " " * 9
        print(
            f"{case.function.__name__:12}{shape:>18}{times.ns[0] / 1000:>9.1f} us"
            f"{ratios['plain']:8.2f}{ratios['fused']:8.2f}{numexpr}"
            f"{'  ' + '; '.join(wrong) if wrong else ''}"
        )
    return int(options.check and bool(failures))


if __name__ == "__main__":
    sys.exit(main())

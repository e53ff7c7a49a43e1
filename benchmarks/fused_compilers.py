"""Time fused functions beside those of numba, JAX and numexpr, in one run.

    python benchmarks/fused_compilers.py [--quick] [--check] [--kind NAME] [--sizes ...]

Each kind of function is computed over float64 elements by all sides in turn, two
threads each; libraries that are not installed are left out, and named. A row shows
ndx's median time of a call, the others' ratios to it, and ndx's ratio to the best of
them; the last line has the geometric mean of these. ``--check`` exits with 1 if the
mean exceeds 0.8, or one ratio 1.1.
"""

import argparse
import importlib.util
import math
import os
import re
import sys
import time
from typing import NamedTuple

THREADS = 2
# Read by the libraries when they are imported.
os.environ |= dict.fromkeys(
    ("NDX_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "NUMEXPR_NUM_THREADS"),
    str(THREADS),
)

import numpy as np  # noqa: E402
from timing import compile_loop, side_by_side  # noqa: E402

import ndx  # noqa: E402

MEAN, MOST = 0.8, 1.1
SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)


class Kind(NamedTuple):
    """One expression of a few operands; `{}` is the library's namespace."""

    name: str
    operands: str
    code: str
    numexpr: str


KINDS = [
    Kind("polynomial", "a", "((0.3 * a - 1.2) * a + 0.7) * a - 0.5",
         "((0.3 * a - 1.2) * a + 0.7) * a - 0.5"),
    Kind("Gaussian", "ab", "{}.exp(-0.5 * ((a - b) / 0.8) ** 2)",
         "exp(-0.5 * ((a - b) / 0.8) ** 2)"),
    Kind("roots, logs", "ab", "{}.sqrt(a * a + b * b) + {}.log(a + 1.0)",
         "sqrt(a * a + b * b) + log(a + 1.0)"),
    Kind("where", "abc", "{}.where(a > 0.7, a * 1.5, b - 0.1 * c)",
         "where(a > 0.7, a * 1.5, b - 0.1 * c)"),
    Kind("sum", "ab", "{}.sum((a - b) * (a - b))", "sum((a - b) * (a - b))"),
]  # fmt: skip


def function_of(kind, namespace):
    """Return the function of a kind, over a library's namespace."""
    source = (
        f"def {kind.name.split(',')[0]}({', '.join(kind.operands)}):\n"
        f"    return {kind.code.replace('{}', 'xp')}\n"
    )
    exec(source, made := {"xp": namespace})
    return made[kind.name.split(",")[0]]


def numba_side(kind, theirs):
    """Return the call of numba's parallel function, and its values."""
    import numba

    numba.set_num_threads(THREADS)
    compiled = numba.njit(parallel=True, fastmath=False)(function_of(kind, np))
    return f"f({', '.join(kind.operands)})", {"f": compiled, **theirs}


def numba_loop_side(kind, theirs):
    """Return the call of the same as a loop over elements, and its values."""
    import numba

    numba.set_num_threads(THREADS)
    code = kind.code.replace("{}.where", "choose").replace("{}.sum", "")
    code = code.replace("{}", "xp")
    for name in kind.operands:
        code = re.sub(rf"\b{name}\b", f"{name}[i]", code)
    if kind.name == "sum":
        start, step, end = "0.0", "total +=", "total"
    else:
        start, step, end = "xp.empty_like(a)", "total[i] =", "total"
    source = (
        f"def loop({', '.join(kind.operands)}):\n"
        f"    total = {start}\n"
        f"    for i in range(a.size):\n"
        f"        {step} {code}\n"
        f"    return {end}\n"
    ).replace("range", "prange")
    choose = numba.njit(inline="always")(lambda test, a, b: a if test else b)
    made = {"xp": np, "prange": numba.prange, "choose": choose}
    exec(source, made)
    compiled = numba.njit(parallel=True, fastmath=False)(made["loop"])
    return f"f({', '.join(kind.operands)})", {"f": compiled, **theirs}


def jax_side(kind, theirs):
    """Return the call of JAX's compiled function, and its values."""
    import jax

    jax.config.update("jax_enable_x64", True)
    compiled = jax.jit(function_of(kind, jax.numpy))
    values = {name: jax.device_put(x) for name, x in theirs.items()}
    code = f"f({', '.join(kind.operands)}).block_until_ready()"
    return code, {"f": compiled, **values}


def numexpr_side(kind, theirs):
    """Return the call of numexpr, and its values."""
    import numexpr

    numexpr.set_num_threads(THREADS)
    code = f"evaluate({kind.numexpr!r}, there)"
    return code, {"evaluate": numexpr.evaluate, "there": theirs}


# Functions of whole arrays, but for the loop, which is how numba is fastest.
OTHERS = {
    "numba": numba_side,
    "numba loop": numba_loop_side,
    "jax": jax_side,
    "numexpr": numexpr_side,
}


def sides(kind, size, others):
    """Return the timed loops of all sides, by name; their results were compared."""
    rng = np.random.default_rng(0)
    theirs = {name: rng.random(size) for name in kind.operands}
    ours = {name: ndx.asarray(x, copy=True) for name, x in theirs.items()}
    fused = ndx.fuse(function_of(kind, ndx))
    expected = function_of(kind, np)(**theirs)
    calls = {"ndx": (f"f({', '.join(kind.operands)})", {"f": fused, **ours})}
    for name in others:
        calls[name] = OTHERS[name](kind, theirs)
    for code, values in calls.values():
        np.testing.assert_allclose(np.asarray(eval(code, values)), expected, rtol=1e-9)
    return {name: rested(compile_loop(*call)) for name, call in calls.items()}


def rested(loop):
    """Return a loop that starts when the threads of all sides sleep.

    Those of OpenMP look for work for some milliseconds, in which they take a core.
    """

    def run(count):
        time.sleep(0.03)
        loop(count // 8)
        return loop(count)

    return run


def main(arguments=None):
    """Print the table; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer, shorter batches")
    parser.add_argument("--check", action="store_true", help="fail at a missed target")
    parser.add_argument("--kind", help="the start of a kind's name; default: all")
    parser.add_argument("--sizes", type=float, nargs="+", default=SIZES)
    options = parser.parse_args(arguments)
    repeats, batch_ns = (11, 5e6) if options.quick else (31, 2e7)
    others = [name for name in OTHERS if importlib.util.find_spec(name.split()[0])]
    for name in OTHERS:
        if name not in others:
            print(f"{name} is not installed, and left out")
    if not others:
        return 0
    print(f"{'':12}{'elements':>10}{'ndx':>14}", end="")
    print(*(f"{name:>11}" for name in others), f"{'to the best':>13}", sep="")
    found = []
    for kind in KINDS:
        if options.kind and not kind.name.startswith(options.kind):
            continue
        for size in map(int, options.sizes):
            loops = sides(kind, size, others)
            times = side_by_side(list(loops.values()), repeats, batch_ns)
            _, *ratios = times.ratios
            found.append(1 / min(ratios))
            print(f"{kind.name:12}{size:10}{times.ns[0] / 1000:11.1f} us", end="")
            print(*(f"{x:11.2f}" for x in ratios), f"{found[-1]:13.2f}", sep="")
    mean = math.exp(sum(map(math.log, found)) / len(found))
    print(f"geometric mean {mean:.2f}, at most {max(found):.2f}")
    return int(options.check and (mean > MEAN or max(found) > MOST))


if __name__ == "__main__":
    sys.exit(main())

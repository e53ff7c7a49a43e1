"""Products of BLAS and ndx's threads in turn: does one slow the other down?

    python benchmarks/blas_threads.py [--side 600] [--size 1000000] [--repeats 15]

BLAS has threads of its own, which may spin for a while after a product, and so take the
cores from what follows. Each kind of work is timed alone, and in turns: a product, then
some elementwise operations. In turns, each should take as long as alone; the
table has the times in ms, and their ratio. NumPy computes elementwise on one thread.
"""

import argparse
import os
import time
from statistics import median

import numpy as np
from timing import side_by_side

import ndx


def clock_of(function, count):
    """Return the seconds that some calls of a function take."""
    start = time.perf_counter()
    for _ in range(count):
        function()
    return time.perf_counter() - start


def loop_of(function):
    """Return a function that calls another, and returns nanoseconds."""
    return lambda count: int(clock_of(function, count) * 1e9)


def in_turns(product, elementwise, repeats):
    """Return the median seconds of each of two functions, called in turn."""
    rows = []
    for _ in range(repeats + 1):
        rows.append((clock_of(product, 1), clock_of(elementwise, 4) / 4))
    # The first row warms up.
    return [median(column) for column in zip(*rows[1:], strict=True)]


def work_of(xp, side, size):
    """Return a product and an elementwise operation of a library."""
    rng = np.random.default_rng(0)
    m = xp.asarray(rng.standard_normal((side, side)))
    x = xp.asarray(rng.standard_normal(size))

    def product():
        return m @ m

    def elementwise():
        return x * 2.0 + x

    return product, elementwise


def main(argv=None):
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--side", type=int, default=600, help="of the matrices")
    parser.add_argument("--size", type=int, default=1_000_000, help="of the vectors")
    parser.add_argument("--repeats", type=int, default=15)
    args = parser.parse_args(argv)
    before = ndx.get_num_threads()
    print(f"{os.cpu_count()} cores, {before} threads of ndx")
    print(f"{'':26}{'alone':>10}{'in turns':>10}{'ratio':>8}   (ms)")
    for name, xp, threads in [
        ("NumPy", np, before),
        ("ndx, 1 thread", ndx, 1),
        (f"ndx, {before} threads", ndx, before),
    ]:
        ndx.set_num_threads(threads)
        try:
            work = work_of(xp, args.side, args.size)
            alone = [
                side_by_side([loop_of(function)], args.repeats, 2e7).ns[0] / 1e9
                for function in work
            ]
            turns = in_turns(*work, args.repeats)
        finally:
            ndx.set_num_threads(before)
        for what, one, other in zip(
            ("product", "x * 2 + x"), alone, turns, strict=True
        ):
            print(
                f"{name:16}{what:10}{one * 1e3:10.2f}{other * 1e3:10.2f}"
                f"{other / one:8.2f}"
            )


if __name__ == "__main__":
    main()

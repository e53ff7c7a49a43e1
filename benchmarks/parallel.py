"""Time workers side by side: how much more do two do than one?

    python benchmarks/parallel.py [--workers 2] [--repeats 9] [--quick] [--check]

Each kind of work computes on arrays that fit in the cache, in operations that release
the GIL (ndx does for 32,768 elements and more), with one thread for each. A loop, one
worker and several take turns, in one process; a row shows the median time of each, the
median of the ratios of neighbouring runs (the throughput), and that of one worker to
the loop. The first row is the machine's own: NumPy's matrix products in plain threads,
with nothing of ndx. If its ratio is low, other programs have the cores. BLAS has one
thread if threadpoolctl is installed.

``--check`` exits with 1 if several workers do less than 0.85 of what so many should.
"""

import argparse
import contextlib
import functools
import os
import sys
import threading
import time
from statistics import median
from typing import NamedTuple

import numpy as np

import ndx

# Of the throughput that so many workers could have: 1.7 for two.
TARGET = 0.85
MACHINE = "(the machine)"


class Row(NamedTuple):
    """Median seconds of a run: a loop, one worker, several; ratios of throughput."""

    name: str
    loop: float
    one: float
    several: float
    ratio: float
    overhead: float


def matrices(x):
    """Multiply matrices: BLAS."""
    y = x
    for _ in range(8):
        y = ndx.tanh(y @ x)
    return ndx.sum(y)


def elements(x):
    """Compute elementwise: NumPy's loops, called by ndx."""
    y = x
    for _ in range(8):
        y = ndx.tanh(ndx.sin(y) + x)
    return ndx.sum(y)


def signals(x):
    """Filter by Fourier transforms."""
    found = ndx.fft.fft(x)
    return ndx.max(ndx.abs(ndx.fft.ifft(found * ndx.abs(found))))


def step(params, batch):
    """Train a linear model on a batch: for `ndx.parallel.train`."""
    x, y = batch
    error = x @ params - y
    return params - 1e-4 * (x.T @ error), ndx.mean(error * error)


def seconds(run):
    """Return how long a call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def side_by_side(name, runs, repeats):
    """Run a loop, one worker and several in turn; return a row."""
    for run in runs:
        run()
    times = []
    for turn in range(repeats):
        order = [(turn + i) % 3 for i in range(3)]
        found = {i: seconds(runs[i]) for i in order}
        times.append([found[i] for i in range(3)])
    loop, one, several = map(median, zip(*times, strict=True))
    ratio = median(found[1] / found[2] for found in times)
    overhead = median(found[1] / found[0] for found in times)
    return Row(name, loop, one, several, ratio, overhead)


def products_in_threads(matrix, count, workers):
    """Multiply matrices with NumPy, in plain threads."""

    def multiply():
        for _ in range(count // max(1, workers)):
            matrix @ matrix

    threads = [threading.Thread(target=multiply) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not workers:
        multiply()


def mapped(fn, items, workers):
    """Map a function; a loop in a workspace for no workers."""
    if workers:
        list(ndx.parallel.map(fn, items, workers=workers, threads=1))
        return
    with ndx.workspace(None, spill="grow") as ws:
        pass
    compute = ws(fn)
    for each in items:
        compute(each)
    ws.destroy(trim=False)


def trained(params, batches, workers):
    """Train, with averages after 16 batches; a loop for no workers."""
    if workers:
        ndx.parallel.train(
            step, params, batches, workers=workers, average_every=16, threads=1
        )
        return
    with ndx.workspace(None, spill="grow") as ws:
        pass
    compute = ws(step)
    for each in batches:
        params, _ = compute(params, each)
    ws.destroy(trim=False)


def measure(workers, repeats, quick):
    """Yield a row for each kind of work."""
    rng = np.random.default_rng(0)
    count = 64 if quick else 256
    square = [ndx.asarray(rng.standard_normal((200, 200)) / 14) for _ in range(4)]
    lines = [ndx.asarray(rng.random(60_000)) for _ in range(4)]
    waves = [ndx.asarray(rng.random(40_000)) for _ in range(4)]
    cases = [
        ("products", matrices, square),
        ("elementwise", elements, lines),
        ("transforms", signals, waves),
    ]
    own = rng.standard_normal((400, 400))
    runs = [
        functools.partial(products_in_threads, own, count // 4, n)
        for n in (0, 1, workers)
    ]
    yield side_by_side(MACHINE, runs, repeats)
    for name, fn, given in cases:
        items = (given * count)[:count]
        runs = [functools.partial(mapped, fn, items, n) for n in (0, 1, workers)]
        yield side_by_side(f"map: {name}", runs, repeats)
    batches = [
        (
            ndx.asarray(rng.standard_normal((512, 128))),
            ndx.asarray(rng.standard_normal((512, 128))),
        )
        for _ in range(4)
    ]
    given = (batches * count)[:count]
    params = ndx.zeros((128, 128))
    runs = [functools.partial(trained, params, given, n) for n in (0, 1, workers)]
    yield side_by_side("train: linear model", runs, repeats)


def main(argv=None):
    """Measure and print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="a quarter of the items")
    parser.add_argument("--check", action="store_true", help="fail below the target")
    args = parser.parse_args(argv)
    before = ndx.get_num_threads()
    target = TARGET * args.workers
    print(f"{os.cpu_count()} cores, {args.workers} workers, target {target:.2f}")
    heads = f"{'loop':>9}{'1 worker':>10}{'several':>9}{'ratio':>8}{'1/loop':>8}"
    print(f"{'(ms)':22}{heads}")
    missed = False
    with one_thread():
        for row in measure(args.workers, args.repeats, args.quick):
            missed |= row.name != MACHINE and row.ratio < target
            print(
                f"{row.name:22}{row.loop * 1e3:9.1f}{row.one * 1e3:10.1f}"
                f"{row.several * 1e3:9.1f}{row.ratio:8.2f}{row.overhead:8.2f}"
            )
    ndx.set_num_threads(before)
    return int(args.check and missed)


def one_thread():
    """Return a scope in which ndx and, if it can be, BLAS have one thread."""
    ndx.set_num_threads(1)
    try:
        import threadpoolctl
    except ImportError:
        return contextlib.nullcontext()
    return threadpoolctl.threadpool_limits(1)


if __name__ == "__main__":
    sys.exit(main())

"""Time several threads on small arrays: how much more do they do than one?

    PYTHON_GIL=0 python3.13t benchmarks/threads.py [--threads 2] [--step 100] [--quick]
        [--check]

Each thread computes on arrays of its own, in a workspace of its own or without one. A
row shows the time of an operation in one thread, and the median of how many times the
work of one so many threads did: with the GIL no more than 1. NumPy is measured in the
same run. Training and predictions compute ``--step`` operations, 100, for each batch
and request: to hand one over takes time, too.

``--check`` exits with 1 if threads in workspaces of their own do less than 0.9 of what
so many should.
"""

import argparse
import functools
import sys
import threading
import time
from statistics import harmonic_mean, median

import numpy as np

import ndx

TARGET = 0.9
SIZES = (10, 50, 1000)
INSIDE = 20  # operations of a scope


def in_workspaces(operation):
    """Return what makes work of an operation, in a workspace of the thread's own."""

    def make(n):
        def work(count):
            workspace = ndx.workspace("of this thread")
            x = ndx.ones(n)
            compute = operation  # a variable of a closure has a lock
            for _ in range(count // INSIDE):
                with workspace:
                    for _ in range(INSIDE):
                        compute(x)

        return work

    return make


def arithmetic(namespace):
    """Return what makes work of arithmetic on one array."""

    def make(n):
        def work(count):
            x = namespace.ones(n)
            for _ in range(count):
                x * 0.5 + 1

        return work

    return make


def slices(n):
    """Return work of slices."""

    def work(count):
        x = ndx.ones(n)
        for _ in range(count):
            x[1:5]

    return work


def plain(x):
    """Return `x * 0.5 + 1`. A nested function would be counted by all threads."""
    return x * 0.5 + 1


fused = ndx.fuse(plain)


def training(step, n):
    """Return what trains, in workers with workspaces of their own."""

    def train(params, batch):
        for _ in range(step // 2):
            params = params * 0.5 + batch
        return params, 0.0

    def run(count, threads):
        batches = [ndx.ones(n) for _ in range(threads * count // step)]
        begin = time.perf_counter()
        ndx.parallel.train(
            train, ndx.zeros(n), batches, workers=threads, average_every=64, threads=1
        )
        return time.perf_counter() - begin

    return run


def predicting(step, n):
    """Return what asks a predictor, whose workers have workspaces of their own.

    Requests wait before the workers begin: who asks, and reads answers, would be one
    more thread.
    """

    def run(count, threads):
        x = ndx.ones((1, n))
        begun = threading.Event()

        def answer(x):
            if not begun.is_set():
                begun.wait()
            for _ in range(step // 2):
                x = x * 0.5 + 1
            return x

        with ndx.parallel.Predictor(
            answer, workers=threads, max_batch=1, threads=1
        ) as predictor:
            for _ in range(threads * count // step):
                predictor.submit(x)
            begin = time.perf_counter()
            begun.set()
            predictor.close()  # each `result()` would wake this thread
            return time.perf_counter() - begin

    return run


def in_threads(make):
    """Return what runs the work that `make` makes in several threads."""
    return lambda n: functools.partial(seconds, make(n))


def kinds(step):
    """Return a name and a maker of each kind of work."""
    return {
        "x * 0.5 + 1 in workspaces": in_threads(in_workspaces(plain)),
        "the same fused in workspaces": in_threads(in_workspaces(fused)),
        "sum(x) in workspaces": in_threads(in_workspaces(ndx.sum)),
        "train in workspaces": functools.partial(training, step),
        "Predictor in workspaces": functools.partial(predicting, step),
        "x[1:5]": in_threads(slices),
        "x * 0.5 + 1": in_threads(arithmetic(ndx)),
        "x * 0.5 + 1 of NumPy": in_threads(arithmetic(np)),
    }


def seconds(work, count, threads):
    """Return how long threads take that do some work at the same time.

    Each measures itself, from when all of them run: after a barrier the system can let
    one wait for a core for longer than all of its work takes. The result is the
    harmonic mean, so that `threads / result` is the rate of all together.
    """
    barrier = threading.Barrier(threads)
    running, found = [], []

    def run():
        work(INSIDE)
        barrier.wait()
        running.append(True)
        while len(running) < threads:
            time.sleep(0)  # lets the others run where there is a GIL
        begin = time.perf_counter()
        work(count)
        found.append(time.perf_counter() - begin)

    started = [threading.Thread(target=run) for _ in range(threads)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    return harmonic_mean(found)


def measure(run, count, threads, repeats):
    """Return nanoseconds of one thread's operation, and the gain of several threads."""
    alone, gains = [], []
    for _ in range(repeats):
        one = run(count, 1)
        gains.append(threads * one / run(count, threads))
        alone.append(one / count * 1e9)
    return median(alone), median(gains)


def main():
    """Print a table; return whether targets are met."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=2, help="how many")
    parser.add_argument("--step", type=int, default=100, help="operations of a batch")
    parser.add_argument("--quick", action="store_true", help="fewer, shorter runs")
    parser.add_argument("--check", action="store_true", help="fail below the target")
    options = parser.parse_args()
    count, repeats = (20_000, 3) if options.quick else (100_000, 7)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(f"{options.threads} threads, {'with' if gil else 'without'} the GIL")
    print(f"{'':28} {'elements':>8} {'ns':>8} {'gain':>6}")
    good = True
    for name, make in kinds(options.step).items():
        for n in SIZES:
            ns, gain = measure(make(n), count, options.threads, repeats)
            wanted = TARGET * options.threads if "in workspaces" in name else 0
            good &= gain >= wanted
            print(f"{name:28} {n:8} {ns:8.0f} {gain:6.2f}", flush=True)
    return good or not options.check


if __name__ == "__main__":
    sys.exit(not main())

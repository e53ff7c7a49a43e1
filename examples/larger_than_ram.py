"""Standardise a matrix that is larger than its memory, and find its main components.

The matrix, four times the memory that the program is allowed, lives in a file. It is
standardised (mean 0 and standard deviation 1 in each column), its covariance is
computed, and from that the components with the largest variance. The code is the same
as for a small matrix: ndx runs each operation as a pass over the file.

The rows are made from a few hidden factors, so that the result can be checked. A table
shows the disk reads and writes of each step, its time, and the peak of memory. Pages of
files don't count, because the system takes them back when it needs memory.

Run ``python examples/larger_than_ram.py --help`` for the options.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

import ndx
from ndx._lib.sizes import format_size, parse_size

TIMES = 4
FACTORS = 3
# Sample eigenvalues differ from the model's by the square root of the sample size.
TOLERANCE = 8.0


class Step(NamedTuple):
    """The cost of one step."""

    name: str
    seconds: float
    read: int
    written: int
    peak: int


class Meter:
    """Measures steps, and shows the progress of their passes."""

    def __init__(self, *, disable):
        self.steps = []
        self.bar = tqdm(
            unit="B", unit_scale=True, unit_divisor=1024, leave=False, disable=disable
        )

    def progress(self, done, total, name):
        """Show progress: the callback of `ndx.passes`."""
        self.peak = max(self.peak, anonymous_bytes())
        self.bar.total, self.bar.n = total, done
        self.bar.set_description(f"{self.name}: {name}", refresh=False)
        self.bar.refresh()

    @contextlib.contextmanager
    def step(self, name):
        """Measure the body of a ``with``."""
        self.name, self.peak = name, anonymous_bytes()
        start, (read, written) = time.perf_counter(), disk_bytes()
        yield
        seconds, after = time.perf_counter() - start, disk_bytes()
        peak = max(self.peak, anonymous_bytes())
        self.steps.append(
            Step(name, seconds, after[0] - read, after[1] - written, peak)
        )


def disk_bytes():
    """Return the bytes that the process has read and written so far."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0, 0
    counts = dict(line.split(": ") for line in lines)
    return int(counts["read_bytes"]), int(counts["write_bytes"])


def anonymous_bytes():
    """Return the bytes of memory that do not belong to files."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    sizes = [int(line.split()[1]) for line in lines if line.startswith("RssAnon:")]
    return 1024 * sum(sizes)


def make_model(columns, rng):
    """Return the parameters of rows: loadings of the factors, scales and offsets."""
    loadings = rng.normal(size=(FACTORS, columns)) * np.array([[3.0], [2.0], [1.5]])
    scales = np.exp(rng.normal(size=columns))
    return loadings, scales, 10 * rng.normal(size=columns)


def correlation(loadings):
    """Return the correlation of the model's columns; their noise has variance 1."""
    covariance = loadings.T @ loadings + np.eye(loadings.shape[1])
    deviations = np.sqrt(np.diag(covariance))
    return covariance / np.outer(deviations, deviations)


def fill(x, model, rng, rows):
    """Write the model's rows to an array, `rows` at a time."""
    loadings, scales, offsets = map(ndx.asarray, model)
    for start in range(0, x.shape[0], rows):
        count = min(rows, x.shape[0] - start)
        part = rng.standard_normal((count, FACTORS)) @ loadings
        part += rng.standard_normal(part.shape)
        x[start : start + count, :] = part * scales + offsets


def standardised(x):
    """Return a matrix with mean 0 and standard deviation 1 in each column."""
    z = x - ndx.mean(x, axis=0)
    z /= ndx.std(x, axis=0)
    return z


def components(covariance, count):
    """Return the largest eigenvalues of a symmetric matrix, and their vectors."""
    values, vectors = ndx.linalg.eigh(covariance)
    return ndx.flip(values)[:count], ndx.flip(vectors, axis=1)[:, :count]


def analyse(path, x_shape, model, meter, args):
    """Make the matrix and analyse it; return the eigenvalues."""
    rng = ndx.random.default_rng(args.seed)
    with meter.step("make"):
        x = ndx.open(path, "w+", shape=x_shape)
        with ndx.use("host"):
            fill(x, model, rng, max(1, args.memory // 64 // (8 * x_shape[1])))
    with meter.step("standardise"):
        z = standardised(x)
    with meter.step("covariance"):
        covariance = z.T @ z / (x_shape[0] - 1)
    with meter.step("components"):
        values, _ = components(covariance, FACTORS)
    return np.asarray(values)


def print_table(steps, shape, args):
    """Print a line for each step."""
    table = Table(
        title=f"{shape[0]} x {shape[1]} float64, {format_size(8 * shape[0] * shape[1])}"
        f" with {format_size(args.memory)} of memory",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    table.add_column("", no_wrap=True)
    for text in ("seconds", "read", "written", "peak memory"):
        table.add_column(text, justify="right", no_wrap=True)
    for step in steps:
        table.add_row(
            step.name,
            f"{step.seconds:.2f}",
            *(format_size(n) for n in (step.read, step.written, step.peak)),
        )
    Console(width=80).print(table)


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = argparse.ArgumentParser(
        description="Find the main components of a matrix that is four times as large "
        "as the memory for it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.error = lambda message: parser.exit(2, f"{parser.prog}: error: {message}\n")
    add = parser.add_argument
    add("--memory", default="64MiB", metavar="SIZE", help="that the matrix is held in")
    add("--columns", type=int, default=64, metavar="N")
    add("--threads", type=int, metavar="N", help="default: one for each core")
    add("--directory", default=tempfile.gettempdir(), help="for the files")
    add("--seed", type=int, default=0, metavar="N")
    add("--no-progress", action="store_true", help="show no progress bar")
    args = parser.parse_args(argv)
    try:
        args.memory = parse_size(args.memory, "--memory")
        args.passes = ndx.passes(
            threads=args.threads,
            memory=args.memory,
            block=max(4096, args.memory // 16),
            threshold=args.memory // 16,
        )
        with ndx.use("mmap", directory=args.directory):
            ndx.zeros(1)
    except (ValueError, OSError, MemoryError) as error:
        parser.error(" ".join(str(error).split()))
    if args.columns < FACTORS:
        parser.error(f"--columns is {args.columns}; valid are {FACTORS} and more")
    if args.memory < 2**20:
        parser.error("--memory is less than 1 MiB")
    free = shutil.disk_usage(args.directory or tempfile.gettempdir()).free
    if TIMES * args.memory > free:
        parser.error(
            f"the matrix has {format_size(TIMES * args.memory)}, and the disk only "
            f"{format_size(free)}: name another --directory, or less --memory"
        )
    return args


def main(argv=None):
    """Run and report; return the exit code."""
    args = parse_args(argv)
    shape = TIMES * args.memory // (8 * args.columns), args.columns
    model = make_model(args.columns, np.random.default_rng(args.seed))
    meter = Meter(disable=args.no_progress)
    with (
        tempfile.TemporaryDirectory(dir=args.directory) as folder,
        meter.bar,
        ndx.use("mmap", directory=args.directory),
        args.passes,
        ndx.passes(progress=meter.progress),
    ):
        path = os.path.join(folder, "matrix.npy")
        found = analyse(path, shape, model, meter, args)
    print_table(meter.steps, shape, args)
    expected = np.linalg.eigvalsh(correlation(model[0]))[::-1][:FACTORS]
    print(f"Variance of the components: {np.array2string(found, precision=3)}")
    print(f"Of the model:               {np.array2string(expected, precision=3)}")
    error = np.max(np.abs(found / expected - 1))
    if not error <= TOLERANCE / shape[0] ** 0.5:
        print(f"FAILED: they differ by {error:.1%}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

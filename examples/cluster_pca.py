"""Find the main components of a data set on a cluster, with little memory per worker.

The data set is larger than the memory of all workers. Its blocks are made on them, and
stay there for three passes: the mean, the covariance, and the rows' scores on the main
components. Each worker is a process with an ndx backend of its own, whose limit it
never exceeds: blocks that don't fit are written to disk, and read again in the next
pass. With ``--kill``, one worker is killed in the middle of the second pass, and its
blocks are made again by the others.

The result is compared with NumPy's, computed block by block in this process, and the
peak of each worker's memory, as the system measured it, with the worker's limit.

Run ``python examples/cluster_pca.py --help`` for the options. (It is not called
``distributed.py``: Python would import it in place of that package.)
"""

import argparse
import contextlib
import logging
import os
import signal
import sys
import tempfile
import time
from typing import NamedTuple

import dask.array as da
import numpy as np
from cluster_data import FACTORS, make_block, make_model, reference
from dask.distributed import Client, LocalCluster, futures_of
from distributed.diagnostics.progressbar import TextProgressBar
from rich import box
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

import ndx
from ndx._lib.sizes import format_size, parse_size
from ndx._lib.system import peak_resident_memory
from ndx.distributed import WorkerMemory, memory_report

# A worker of distributed has 140 MiB before its first array.
LEAST_LIMIT = 320 * 2**20
TOLERANCE = 1e-10

# ---- On the workers --------------------------------------------------------------


def block_of_rows(model, block_info=None):
    """Return the block of rows at this place of the data set."""
    return make_block(ndx, model, block_info[None]["chunk-location"][0])


def scatter_of(block, mean):
    """Return the products of a block's columns, summed, as a stack of one matrix."""
    with ndx.workspace("task"):
        centred = block - mean
        return (centred.T @ centred)[None].detach()


def scores_of(block, mean, vectors):
    """Return the coordinates of a block's rows on some vectors."""
    with ndx.workspace("task"):
        return ((block - mean) @ vectors).detach()


# ---- The analysis ----------------------------------------------------------------


class Found(NamedTuple):
    """The result: of NumPy's type, in this process."""

    mean: np.ndarray
    covariance: np.ndarray
    variances: np.ndarray  # of the main components, from the covariance
    of_scores: np.ndarray  # the same, from the rows' scores


def data_set(model):
    """Return the data set as a dask array, of which nothing is made yet."""
    counts = tuple(model.rows_of(number) for number in range(model.blocks))
    return da.map_blocks(
        block_of_rows,
        model,
        chunks=(counts, (model.loadings.shape[1],)),
        dtype=float,
        meta=ndx.empty((0, 0)),
    )


def analyse(x, watch):
    """Return the main components of a dask array with chunks of all columns, in passes.

    `watch` waits for dask's arrays to be computed, and shows how far that is.
    """
    columns = x.shape[1]
    empty = ndx.empty((0, 0))
    mean = watch("mean", x.mean(axis=0).persist()).compute()
    scatters = x.map_blocks(
        scatter_of,
        mean,
        chunks=((1,) * x.numblocks[0], (columns,), (columns,)),
        new_axis=2,
        dtype=float,
        meta=ndx.empty((0, 0, 0)),
    )
    scatter = watch("covariance", scatters.sum(axis=0).persist()).compute()
    covariance = scatter / (x.shape[0] - 1)
    values, vectors = ndx.linalg.eigh(covariance)
    vectors = ndx.flip(vectors, axis=1)[:, :FACTORS]
    scores = x.map_blocks(
        scores_of, mean, vectors, chunks=(x.chunks[0], (FACTORS,)), meta=empty
    )
    of_scores = watch("scores", scores.var(axis=0, ddof=1).persist()).compute()
    variances = ndx.flip(values)[:FACTORS]
    return Found(*map(np.asarray, (mean, covariance, variances, of_scores)))


def largest_error(found, mean, covariance):
    """Return the largest relative difference from NumPy's mean and covariance."""
    deviations = np.sqrt(np.diag(covariance))
    variances = np.linalg.eigvalsh(covariance)[::-1][:FACTORS]
    errors = (
        (found.mean - mean) / deviations,
        (found.covariance - covariance) / np.outer(deviations, deviations),
        found.variances / variances - 1,
        found.of_scores / variances - 1,
    )
    return max(np.abs(error).max() for error in errors)


# ---- Progress, and the system's view ----------------------------------------------


class Bar(TextProgressBar):
    """Shows how many tasks of a pass are done, by a bar of tqdm."""

    def __init__(self, futures, bar, on_progress):
        self._bar, self._on_progress = bar, on_progress
        super().__init__(futures)

    def _draw_bar(self, remaining, all, **kwargs):
        self._bar.total, self._bar.n = all, all - remaining
        self._bar.refresh()
        self._on_progress(self._bar.n / max(all, 1))

    def _draw_stop(self, **kwargs):
        pass


class Watch:
    """Waits for passes; kills a worker in the middle of one, if told to.

    Attributes
    ----------
    seconds : dict of str to float
        Of each pass.
    killed_peak : int
        The most memory that the killed worker had, in bytes.
    """

    def __init__(self, *, kill=None, disable):
        self.seconds = {}
        self.killed_peak = 0
        self._kill = kill
        self._disable = disable

    def __call__(self, name, array):
        """Wait for an array that is being computed, and return it."""
        start = time.perf_counter()

        def on_progress(share):
            if self._kill is not None and name == "covariance" and share >= 0.5:
                pid, self._kill = self._kill, None
                self.killed_peak = peak_resident_memory(pid)
                os.kill(pid, signal.SIGKILL)

        with tqdm(desc=name, unit="task", leave=False, disable=self._disable) as bar:
            Bar(futures_of(array), bar, on_progress)
        self.seconds[name] = time.perf_counter() - start
        return array


def print_tables(report, watch, args):
    """Print a line for each pass, and one for each worker."""
    size = format_size(args.model.rows * args.columns * 8)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("pass", no_wrap=True, min_width=10)
    table.add_column("seconds", justify="right")
    for name, seconds in watch.seconds.items():
        table.add_row(name, f"{seconds:.1f}")
    workers = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    workers.add_column("worker", no_wrap=True)
    for text in (
        "arrays,\npeak",
        "arrays,\nlimit",
        "evicted",
        "on disk,\nat the end",
        "process,\npeak",
        "process,\nlimit",
    ):
        workers.add_column(text, justify="right", no_wrap=True)
    for each in report:
        sizes = (
            each.peak_bytes,
            each.limit,
            each.evicted_bytes,
            each.spilled_bytes,
            each.peak_resident_bytes,
            each.memory_limit,
        )
        workers.add_row(each.name, *map(format_size, sizes))
    if watch.killed_peak:
        sizes = format_size(watch.killed_peak), format_size(args.limit)
        workers.add_row("killed", *("-",) * 4, *sizes)
    console = Console(width=80)
    console.print(
        f"{args.model.rows} x {args.columns} float64, {size}, in {args.model.blocks} "
        f"blocks, on {args.workers} workers of {format_size(args.limit)}",
        highlight=False,
    )
    console.print(table)
    console.print(workers)


# ---- The command line ------------------------------------------------------------


def parse_args(argv):
    """Return the options, or exit with code 2 and one line on stderr."""
    parser = argparse.ArgumentParser(
        description="Find the main components of a data set that is larger than the "
        "memory of the workers that hold it.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.error = lambda message: parser.exit(2, f"{parser.prog}: error: {message}\n")
    add = parser.add_argument
    add("--workers", type=int, default=2, metavar="N", help="processes")
    add("--limit", default="384MiB", metavar="SIZE", help="memory of each process")
    add("--size", default="1GiB", metavar="SIZE", help="of the data set")
    add("--columns", type=int, default=256, metavar="N")
    add("--block", default="16MiB", metavar="SIZE", help="of one task's rows")
    add("--kill", action="store_true", help="kill a worker in the middle")
    add("--directory", default=tempfile.gettempdir(), help="for what is on disk")
    add("--seed", type=int, default=0, metavar="N")
    add("--no-progress", action="store_true", help="show no progress bars")
    args = parser.parse_args(argv)
    try:
        for name in ("limit", "size", "block"):
            setattr(args, name, parse_size(getattr(args, name), f"--{name}"))
    except ValueError as error:
        parser.error(str(error))
    least = {"workers": 1, "limit": LEAST_LIMIT, "columns": FACTORS + 1, "seed": 0}
    least["block"] = 8 * args.columns
    least["size"] = 2 * args.block
    for name, bound in least.items():
        if getattr(args, name) < bound:
            parser.error(
                f"--{name} is {getattr(args, name)}; at least {bound} is valid"
            )
    if args.kill and args.workers < 2:
        parser.error("--kill needs two workers or more: one that is left")
    if not os.path.isdir(args.directory):
        parser.error(f"--directory: there is no folder {args.directory!r}")
    row = 8 * args.columns
    args.model = make_model(
        args.size // row, args.columns, args.block // row, args.seed
    )
    return args


@contextlib.contextmanager
def cluster(args):
    """Yield a client of workers with the memory that the options say."""
    with (
        tempfile.TemporaryDirectory(dir=args.directory) as folder,
        LocalCluster(
            n_workers=args.workers,
            threads_per_worker=1,
            memory_limit=args.limit,
            local_directory=folder,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as processes,
        Client(processes) as client,
    ):
        client.register_plugin(
            WorkerMemory(workspaces=ndx.WorkspaceConfig(learn="liveness"))
        )
        yield client


def main(argv=None):
    """Run and report; return the exit code."""
    args = parse_args(argv)
    with cluster(args) as client:
        first = memory_report(client)[0]
        watch = Watch(kill=first.pid if args.kill else None, disable=args.no_progress)
        x = watch("make", data_set(args.model).persist())
        found = analyse(x, watch)
        report = memory_report(client)
        del x
    print_tables(report, watch, args)
    bar = tqdm(
        desc="NumPy", total=args.model.blocks, leave=False, disable=args.no_progress
    )
    with bar:
        error = largest_error(found, *reference(args.model, bar.update))
    print(f"Variance of the components: {np.array2string(found.variances)}")
    print(f"Largest relative difference from NumPy: {error:.1e}")
    failed = []
    if not error <= TOLERANCE:
        failed.append(f"FAILED: they differ by more than {TOLERANCE}")
    peaks = [each.peak_resident_bytes for each in report] + [watch.killed_peak]
    if max(peaks) > args.limit:
        failed.append(f"FAILED: a worker had {format_size(max(peaks))} of memory")
    if args.kill and not watch.killed_peak:
        failed.append("FAILED: no worker was killed: the data set is too small")
    print("\n".join(failed), file=sys.stderr, end="\n" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

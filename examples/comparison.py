"""Run the same work on NumPy, on ndx and on ndx in workspaces, and compare.

The examples share this module. An example describes its work by a class of *runs*,
made by ``Run(xp, scope)``, where ``xp`` is an array namespace and ``scope()`` returns
the context manager around each step. A run has these members:

- ``repeat(meter, on_step)`` takes the same number of steps each time, within
  ``meter``, and calls ``on_step`` after each;
- ``history``: one number per repeat, the same for all variants.

`compare` times and counts the runs' repeats, which alternate, so that disturbances
affect all variants. It then samples the memory of one further repeat, line by line, in
runs of their own.
"""

import argparse
import contextlib
import functools
import resource
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table
from tqdm import tqdm

import ndx

KIB = 1024
# NumPy keeps freed blocks below this size for reuse; larger ones go to malloc.
NUMPY_CACHED_BYTES = 1024
PICTURED_STEPS = 6
STYLES = (
    {"color": "#b4b9c2", "linewidth": 4},
    {"color": "#2f6fb3", "linewidth": 1.4},
    {"color": "#d1531b", "linewidth": 2},
    {"color": "#3d8b40", "linewidth": 2},
    {"color": "#8e44ad", "linewidth": 2},
    {"color": "#c0a000", "linewidth": 2},
)


# ---- Counting NumPy's allocations --------------------------------------------


class CountedArray(np.ndarray):
    """A NumPy array that counts each array computed from it that owns memory.

    Buffers that NumPy uses inside one operation, and frees before it returns,
    are not seen.
    """

    made = 0
    from_malloc = 0

    @classmethod
    def counters(cls):
        """Return the number of buffers, and how many of them came from malloc."""
        return cls.made, cls.from_malloc

    @staticmethod
    def _count(array):
        CountedArray.made += 1
        CountedArray.from_malloc += array.nbytes >= NUMPY_CACHED_BYTES

    def __array_finalize__(self, obj):
        if self.flags.owndata:
            self._count(self)

    def __array_ufunc__(self, ufunc, method, *inputs, out=None, **kwargs):
        if out is not None:
            kwargs["out"] = tuple(np.asarray(array) for array in out)
        plain = [np.asarray(x) if isinstance(x, CountedArray) else x for x in inputs]
        result = getattr(ufunc, method)(*plain, **kwargs)
        if out is not None:
            return out[0]
        if isinstance(result, np.ndarray):
            self._count(result)
            return result.view(CountedArray)
        return result


class CountingNumPy:
    """The NumPy namespace, whose ``asarray`` makes counted arrays."""

    def __getattr__(self, name):
        return getattr(np, name)

    def asarray(self, *args, **kwargs):
        """Return ``numpy.asarray(...)`` as a `CountedArray`."""
        array = np.asarray(*args, **kwargs)
        if array.flags.owndata:
            CountedArray._count(array)
        return array.view(CountedArray)


# ---- The variants ------------------------------------------------------------


class Variant(NamedTuple):
    """The library of a run's arrays, and the place of their memory."""

    label: str
    xp: Any
    backend: str | None = None
    workspace: str | None = None
    policies: dict | None = None
    options: dict | None = None  # more arguments of the run

    def memory(self):
        """Return the context manager in which its arrays are made."""
        return ndx.use(self.backend) if self.backend else contextlib.nullcontext()

    def scope(self, suffix=""):
        """Return a function that returns the context manager of a step.

        Called in `memory`, once per run.
        """
        if self.workspace is None:
            return contextlib.nullcontext
        name = self.workspace + suffix
        ndx.workspace(name, **self.policies)
        return functools.partial(ndx.workspace, name)

    def counters(self):
        """Return the number of array buffers, and how many came from the system."""
        stats = ndx.memory.stats(self.backend)
        return stats["total_allocations"], stats["system_allocations"]


def variants(backend, **workspaces):
    """Return NumPy, ndx, and ndx in workspaces.

    Parameters
    ----------
    backend : str
        The backend of ndx's arrays.
    **workspaces : dict
        Labels and policies.
    """
    in_workspaces = [
        Variant(f"ndx + {label}", ndx, backend, label, policies)
        for label, policies in workspaces.items()
    ]
    return [Variant("NumPy", np), Variant("ndx", ndx, backend), *in_workspaces]


# ---- Measuring ---------------------------------------------------------------


class Meter:
    """Measures a repeat, from entering to leaving the context manager.

    `counters` returns a pair of running totals: array buffers, and how many of
    them came from the system.
    """

    def __init__(self, counters=None):
        self._counters = counters
        self.seconds = []
        self.faults = []
        self.counts = []

    def __enter__(self):
        self._counted = self._counters() if self._counters else None
        self._faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self._started = time.perf_counter()
        return self

    def __exit__(self, *exc_info):
        self.seconds.append(time.perf_counter() - self._started)
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        self.faults.append(faults - self._faults)
        if self._counters:
            pairs = zip(self._counters(), self._counted, strict=True)
            self.counts.append(tuple(now - before for now, before in pairs))


class Samples:
    """Bytes of array data over time, relative to those when sampling began.

    It is entered, like a `Meter`, around the steps of a repeat: samples before
    that are ``setup``, those within are ``steps`` (one list per step), and those
    after are dropped. A sample is a pair: the bytes before a line of the step's
    code, and the peak since the sample before.
    """

    def __init__(self, gauge):
        self._gauge = gauge
        self._start = gauge()[0]
        self.setup = []
        self.steps = []
        self._current = self.setup

    def __enter__(self):
        self._current = []
        return self

    def __exit__(self, *exc_info):
        self._current = None

    def end_step(self):
        """Finish the list of one step and begin the next."""
        self.steps.append(self._current)
        self._current = []

    def sample(self):
        """Add one sample."""
        if self._current is not None:
            now, peak = self._gauge()
            self._current.append((now - self._start, peak - self._start))

    @property
    def peak(self):
        """The peak of array data in bytes, in set-up or a step."""
        return max(peak for step in (self.setup, *self.steps) for _, peak in step)


@contextlib.contextmanager
def sampled(gauge, file):
    """Yield `Samples`, taken before each executed line of the code in `file`."""
    samples = Samples(gauge)

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            samples.sample()
        return trace

    previous = sys.gettrace()
    sys.settrace(trace)
    try:
        yield samples
    finally:
        sys.settrace(previous)


@contextlib.contextmanager
def numpy_gauge():
    """Yield a function that returns NumPy's bytes now, and their recent peak."""
    arrays_only = [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    before = 0, 0

    def gauge():
        nonlocal before
        # The peak is that of all objects; its rise since the last sample, less
        # a few Python objects, is NumPy's.
        rise = tracemalloc.get_traced_memory()[1] - before[1]
        traces = tracemalloc.take_snapshot().filter_traces(arrays_only).traces
        now = sum(trace.size for trace in traces)
        peak = max(now, before[0] + rise)
        tracemalloc.reset_peak()
        before = now, tracemalloc.get_traced_memory()[0]
        return now, peak

    tracemalloc.start()
    try:
        gauge()
        yield gauge
    finally:
        tracemalloc.stop()


@contextlib.contextmanager
def ndx_gauge(backend):
    """Yield a function that returns ndx's bytes now, and their recent peak."""

    def gauge():
        stats = ndx.memory.stats(backend)
        ndx.memory.reset_peak(backend)
        return stats["allocated_bytes"], stats["peak_bytes"]

    gauge()
    yield gauge


# ---- Comparing ---------------------------------------------------------------


class Row(NamedTuple):
    """One variant's results."""

    label: str
    run: Any
    meter: Meter
    samples: Samples
    arena: int | None


def compare(make_run, variants, repeats, on_repeat=lambda run: None):
    """Return a `Row` for each variant.

    Parameters
    ----------
    make_run : callable
        Called with a namespace and a scope, returns a run; see above.
    variants : list of Variant
    repeats : int
        Timed repeats of each variant, which alternate.
    on_repeat : callable
        Called with the run of the last variant, after each turn.
    """
    runs, meters = [], []
    for variant in variants:
        with variant.memory():
            runs.append(
                make_run(variant.xp, variant.scope(), **(variant.options or {}))
            )
        meters.append(Meter(variant.counters if variant.xp is ndx else None))
    for turn in range(repeats):
        # Each goes first in turn, so that none always finds the same one's caches.
        for place in range(len(variants)):
            chosen = (place + turn) % len(variants)
            with variants[chosen].memory():
                runs[chosen].repeat(meters[chosen])
        on_repeat(runs[-1])
    rows = []
    for variant, run, meter in zip(variants, runs, meters, strict=True):
        if variant.xp is np:
            # Counting takes time, so it has a run of its own.
            counting = Meter(CountedArray.counters)
            make_run(CountingNumPy(), contextlib.nullcontext).repeat(counting)
            meter.counts = counting.counts
        samples = sample(make_run, variant)
        arena = None
        if variant.workspace is not None:
            arena = ndx.workspace(variant.workspace).stats()["size"]
        rows.append(Row(variant.label, run, meter, samples, arena))
    return rows


def sample(make_run, variant):
    """Take one repeat slowly, with a sample of the memory before each line."""
    gauge = numpy_gauge() if variant.xp is np else ndx_gauge(variant.backend)
    # A new workspace, because the samples show its start.
    with variant.memory(), gauge as look:
        scope = variant.scope(", sampled")
        with sampled(look, make_run_file(make_run)) as samples:
            run = make_run(variant.xp, scope, **(variant.options or {}))
            run.repeat(samples, samples.end_step)
    return samples


def make_run_file(make_run):
    """Return the file of the class that `make_run` is, or is a partial of."""
    made = make_run.func if isinstance(make_run, functools.partial) else make_run
    return made.repeat.__code__.co_filename


def spread(rows):
    """Return the largest difference between the variants' histories."""
    return max(
        max(values) - min(values)
        for values in zip(*(row.run.history for row in rows), strict=True)
    )


# ---- Showing -----------------------------------------------------------------


def print_table(rows, title, heading, results, note):
    """Print one line per variant.

    Parameters
    ----------
    rows : list of Row
        The times of the others are compared with the first one's.
    title, heading : str
        The title, and the heading of the column of results.
    results : list of str
        The text of that column, for each row.
    note : str
        Printed below the table, before the largest difference of the histories.
    """
    table = Table(
        title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True
    )
    table.add_column("", no_wrap=True)
    for text in (
        heading,
        "ms /\nstep",
        "x\nNumPy",
        "buffers\n/ step",
        "system\n/ step",
        "faults\n/ step",
        "peak\nKiB",
        "arena\nKiB",
    ):
        table.add_column(text, justify="right", no_wrap=True)
    for row, result in zip(rows, results, strict=True):
        steps = len(row.samples.steps)
        # The first repeat warms up: caches fill, the workspace learns its size.
        steady = slice(1, None) if len(row.meter.seconds) > 1 else slice(None)
        counted = row.meter.counts[steady] or row.meter.counts
        made, system = (median(column) for column in zip(*counted, strict=True))
        seconds, theirs = row.meter.seconds[steady], rows[0].meter.seconds[steady]
        ratios = [a / b for a, b in zip(seconds, theirs, strict=True)]
        table.add_row(
            row.label,
            result,
            f"{1000 * median(seconds) / steps:.3f}",
            f"{median(ratios):.2f}",
            f"{made / steps:.1f}",
            f"{system / steps:.1f}",
            f"{median(row.meter.faults[steady]) / steps:.1f}",
            f"{row.samples.peak / KIB:,.0f}",
            "-" if row.arena is None else f"{row.arena / KIB:,.0f}",
        )
    console = Console()
    console.print(table)
    console.print(
        "Times are medians of interleaved repeats after the first, of the steps "
        "alone.\n"
        "buffers: array data allocated, in ndx by the backend (the arena of a "
        "workspace asks it for none).\n"
        "system: NumPy, arrays of 1 KiB or more, one malloc each; ndx, requests of "
        "its pool to the system.\n"
        "faults: minor page faults of the process. "
        "peak: array data, what outlives the steps included.\n"
        f"{note} {spread(rows):.1e}.",
        highlight=False,
        soft_wrap=True,
    )


def timeline(samples):
    """Return positions in steps, and KiB above those before the first step."""
    origin = samples.steps[0][0][0]
    xs, ys = [], []
    for number, step in enumerate(samples.steps[:PICTURED_STEPS]):
        for index, (now, peak) in enumerate(step):
            at = number + index / len(step)
            # The peak lies somewhere within the line before this sample.
            xs += [at - 0.5 / len(step), at]
            ys += [(peak - origin) / KIB, (now - origin) / KIB]
    return xs[1:], ys[1:]


def save_picture(rows, path, *, step, without):
    """Draw the array memory of the first steps of each variant into `path`.

    Parameters
    ----------
    rows : list of Row
    path : path-like
    step : str
        The name of a step.
    without : str
        The arrays that exist before the first step, and are not drawn.
    """
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axes = figure.subplots()
    curves = [(row, *timeline(row.samples)) for row in rows]
    for style, (row, xs, ys) in zip(STYLES, curves, strict=False):
        axes.plot(xs, ys, label=row.label, drawstyle="steps-mid", **style)
    steps = min(PICTURED_STEPS, len(rows[0].samples.steps))
    axes.set_xlim(0, steps)
    axes.set_xticks(range(steps + 1))
    axes.set_ylim(0, 1.28 * max(max(ys) for _, _, ys in curves))
    axes.set_xlabel(step)
    axes.set_ylabel("array memory (KiB)")
    axes.set_title(f"Array memory of the first {step}s", loc="left", pad=24)
    axes.text(
        0,
        1.03,
        f"without {without}",
        transform=axes.transAxes,
        color="#555555",
        fontsize=9.5,
    )
    axes.grid(axis="y", color="#e4e4e4")
    axes.grid(axis="x", color="#c9c9c9", linestyle=":")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    # More than the usual ones need two lines.
    columns = len(rows) if len(rows) < len(STYLES) else len(rows) // 2
    axes.legend(loc="upper right", ncols=columns, frameon=False)
    figure.savefig(path, dpi=150, format="png")


# ---- The command line --------------------------------------------------------


class OneLineParser(argparse.ArgumentParser):
    """An argument parser whose errors are one line.

    It has the options of all examples, and checks the backend while it parses.
    """

    def __init__(self, *, description, picture):
        super().__init__(
            description=description,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        self.add_argument(
            "--backend", default="host", metavar="NAME", help="where ndx arrays live"
        )
        self.add_argument(
            "--picture", type=picture_path, default=picture, metavar="PATH"
        )
        self.add_argument(
            "--no-progress", action="store_true", help="show no progress bars"
        )

    def error(self, message):
        """Print `message` to stderr and exit with code 2."""
        self.exit(2, f"{self.prog}: error: {message}\n")

    def parse_args(self, args=None, namespace=None):
        """Return the options, or exit with code 2 and one line on stderr."""
        args = super().parse_args(args, namespace)
        try:
            with ndx.use(args.backend):
                ndx.zeros((1,))
        except (ValueError, RuntimeError, ImportError, OSError, MemoryError) as error:
            self.error(f"argument --backend: {' '.join(str(error).split())}")
        return args


def at_least(minimum):
    """Return an argparse type: an integer of `minimum` or more."""

    def parse(text):
        try:
            value = int(text)
        except ValueError:
            value = minimum - 1
        if value < minimum:
            msg = f"{text!r} is not an integer of {minimum} or more"
            raise argparse.ArgumentTypeError(msg)
        return value

    return parse


def picture_path(text):
    """Return `text` as a path that a PNG file can be written to."""
    path = Path(text)
    if path.suffix.lower() != ".png":
        msg = f"{text!r} does not end in '.png'"
        raise argparse.ArgumentTypeError(msg)
    if not path.parent.is_dir():
        msg = f"{text!r}: there is no folder {str(path.parent)!r}"
        raise argparse.ArgumentTypeError(msg)
    return path


@contextlib.contextmanager
def progress(total, unit, show, *, disable):
    """Yield a function that advances a bar; `show` makes text of its arguments."""
    with tqdm(total=total, unit=unit, disable=disable) as bar:

        def advance(run):
            bar.set_postfix_str(show(run), refresh=False)
            bar.update()
            if bar.n == total:
                # The sampling that follows is not part of its rate.
                bar.close()

        yield advance


def report(rows, args, failed, **picture):
    """Save the picture; return the exit code, 1 with a line on stderr if `failed`."""
    try:
        save_picture(rows, args.picture, **picture)
    except OSError as error:
        print(f"{args.picture}: cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"Picture of the first steps: {args.picture}")
    if failed:
        print(failed, file=sys.stderr)
    return 1 if failed else 0

"""What ``train_digits.py`` measures, and how it shows it.

`Meter` times and counts the steps of undisturbed epochs. `sampled` watches one
further epoch line by line, for the peak and the picture. `CountedArray` counts
the arrays that NumPy makes.
"""

import contextlib
import resource
import sys
import time
import tracemalloc
from statistics import median
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from rich import box
from rich.console import Console
from rich.table import Table

import ndx

KIB = 1024
# NumPy keeps freed blocks below this size for reuse; larger ones go to malloc.
NUMPY_CACHED_BYTES = 1024
PICTURED_STEPS = 6
STYLES = (
    {"color": "#b4b9c2", "linewidth": 4},
    {"color": "#2f6fb3", "linewidth": 1.4},
    {"color": "#d1531b", "linewidth": 2},
)


class Row(NamedTuple):
    """One variant's results."""

    label: str
    trained: tuple
    meter: "Meter"
    samples: "Samples"
    arena: int | None


class Meter:
    """Measures what happens between entering and leaving it, once per epoch.

    `counters` returns a pair of running totals: array buffers made, and how
    many of them were asked of the system.
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


# ---- Counting what NumPy allocates -------------------------------------------


class CountedArray(np.ndarray):
    """A NumPy array that counts each array computed from it that owns memory.

    Buffers that NumPy uses inside one operation, and frees before it returns,
    are not seen.
    """

    made = 0
    from_malloc = 0

    @classmethod
    def counters(cls):
        """Return how many buffers were made, and how many of them by malloc."""
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
        return np.asarray(*args, **kwargs).view(CountedArray)


def ndx_counters(backend):
    """Return a function that reads the counters of `backend`."""

    def counters():
        stats = ndx.memory.stats(backend)
        return stats["total_allocations"], stats["system_allocations"]

    return counters


# ---- Sampling memory over time -----------------------------------------------


class Samples:
    """Bytes of array data over time, relative to those when sampling began.

    It is entered, like a `Meter`, around the steps of an epoch: samples before
    that are ``setup``, those within are ``steps`` (one list per step), and those
    after are dropped. A sample is a pair: the bytes before a line of the step's
    code, and the most there was since the sample before.
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
        """The most bytes of array data at any moment, in set-up or a step."""
        return max(peak for step in (self.setup, *self.steps) for _, peak in step)


@contextlib.contextmanager
def sampled(gauge, file):
    """Give `Samples`, taken before each line that runs of the code in `file`."""
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
    """Give a function that returns NumPy's bytes now, and their recent peak."""
    arrays_only = [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
    before = 0, 0

    def gauge():
        nonlocal before
        # The peak is that of all objects; what rose since the last sample, less
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


def ndx_gauge(backend):
    """Return a function that returns ndx's bytes now, and their recent peak."""

    def gauge():
        stats = ndx.memory.stats(backend)
        ndx.memory.reset_peak(backend)
        return stats["allocated_bytes"], stats["peak_bytes"]

    gauge()
    return gauge


# ---- Showing -----------------------------------------------------------------


def print_table(rows, console=None):
    """Print one line per variant."""
    table = Table(
        title="Training on handwritten digits", box=box.SIMPLE_HEAD, pad_edge=False
    )
    table.add_column("", no_wrap=True)
    for heading in (
        "test\naccur.",
        "ms /\nepoch",
        "buffers\n/ step",
        "system\n/ step",
        "faults\n/ step",
        "peak\nKiB",
        "arena\nKiB",
    ):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        steps = len(row.samples.steps)
        # The first epoch warms up: caches fill, the workspace learns its size.
        steady = slice(1, None) if len(row.meter.seconds) > 1 else slice(None)
        counted = row.meter.counts[steady] or row.meter.counts
        made, system = (median(column) for column in zip(*counted, strict=True))
        table.add_row(
            row.label,
            f"{row.trained.accuracy:.4f}",
            f"{1000 * median(row.meter.seconds[steady]):.2f}",
            f"{made / steps:.1f}",
            f"{system / steps:.1f}",
            f"{median(row.meter.faults[steady]) / steps:.1f}",
            f"{row.samples.peak / KIB:,.0f}",
            "-" if row.arena is None else f"{row.arena / KIB:,.0f}",
        )
    console = console or Console()
    console.print(table)
    spread = max(
        max(losses) - min(losses)
        for losses in zip(*(row.trained.losses for row in rows), strict=True)
    )
    console.print(
        "Medians over the epochs after the first, of the steps alone (shuffling "
        "is outside).\n"
        "buffers: array data allocated, in ndx by the backend (the arena of a "
        "workspace asks it for none).\n"
        "system: NumPy, arrays of 1 KiB or more, one malloc each; ndx, requests of "
        "its pool to the system.\n"
        "faults: minor page faults of the process. "
        "peak: array data with data set and parameters.\n"
        f"Largest difference between the variants' losses: {spread:.1e}.",
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


def save_picture(rows, path):
    """Draw the array memory of the first steps of each variant into `path`."""
    figure = Figure(figsize=(9, 4.8), layout="constrained")
    axes = figure.subplots()
    curves = [(row, *timeline(row.samples)) for row in rows]
    for style, (row, xs, ys) in zip(STYLES, curves, strict=True):
        axes.plot(xs, ys, label=row.label, **style)
    steps = min(PICTURED_STEPS, len(rows[0].samples.steps))
    axes.set_xlim(0, steps)
    axes.set_xticks(range(steps + 1))
    axes.set_ylim(0, 1.28 * max(max(ys) for _, _, ys in curves))
    axes.set_xlabel("training step")
    axes.set_ylabel("array memory (KiB)")
    axes.set_title("Array memory of the first training steps", loc="left", pad=24)
    axes.text(
        0,
        1.03,
        "without the data set, the parameters and their momentum",
        transform=axes.transAxes,
        color="#555555",
        fontsize=9.5,
    )
    axes.grid(axis="y", color="#e4e4e4")
    axes.grid(axis="x", color="#c9c9c9", linestyle=":")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper right", ncols=3, frameon=False)
    figure.savefig(path, dpi=150, format="png")

"""Will it fit? The largest batch within a limit, by a model of the peak and by runs."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ndx._core import NDArray
from ndx._lib.functions import check_function
from ndx._lib.options import at_least
from ndx._lib.sizes import format_size, parse_limit
from ndx._lib.text import Text
from ndx._lib.trees import leaves
from ndx.memory._counters import backend_of
from ndx.memory._estimate import (
    EVENTS,
    allocated_by,
    check_computed,
    made_of,
    on_its_own,
)
from ndx.memory._events import births_on
from ndx.memory._peak_model import PeakModel, Sample
from ndx.memory._trace import record

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ndx._typing import BackendLike, Size

__all__ = ["Fit", "Run", "fit"]

# The part of a limit that pages and idle memory may take before a model is left.
_SLACK = 16
# How far `fit` looks for a batch with which the peak grows, unless it is given `most`.
_FLAT = 2**12


class Run(NamedTuple):
    """A run of `ndx.memory.fit`, under the limit.

    Attributes
    ----------
    batch : int
        The batch.
    fits : bool
        Whether the function has returned.
    peak_bytes, reserved_bytes : int
        As of `Estimate`; of a run that was refused, until then.
    purpose : str
        ``"model"``: it was recorded; ``"confirm"``: as without `fit`.
    """

    batch: int
    fits: bool
    peak_bytes: int
    reserved_bytes: int
    purpose: str


@dataclass(frozen=True)
class Fit:
    """The largest batch within a limit; made by `ndx.memory.fit`. ``int`` gives it.

    Attributes
    ----------
    batch : int
        The batch.
    peak_bytes : int
        The peak of its run, as `Estimate.peak_bytes`.
    limit : int
        The limit, in bytes.
    bound : str
        Why no larger batch was taken. ``"refused"``: the next one was run, and was
        refused memory. ``"most"``: it is the largest one that was asked for.
    runs : tuple of Run
        All runs, in their order.
    model : PeakModel or None
        The last model of the peak; None: there was one run.
    """

    batch: int
    peak_bytes: int
    limit: int
    bound: str
    runs: tuple[Run, ...]
    model: PeakModel | None

    def __int__(self):
        return self.batch

    __index__ = __int__

    def __repr__(self):
        return f"<Fit: batch {self.batch:,} in {format_size(self.limit)}>"

    def __str__(self):
        return str(self.table())

    def _repr_html_(self):
        return self.table()._repr_html_()

    def table(self) -> str:
        """Return a table of the runs and of the model.

        Returns
        -------
        str
            Text for people.
        """
        lines = [
            f"batch {self.batch:,}: {self.peak_bytes:,} of {self.limit:,} B",
            f"{'batch':>12}  {'peak':>15}  {'held':>15}  run",
        ]
        lines += [
            f"{each.batch:>12,}  {each.peak_bytes:>15,}  {each.reserved_bytes:>15,}  "
            f"{each.purpose}{'' if each.fits else ': refused'}"
            for each in self.runs
        ]
        if self.model is not None:
            lines += ["peak, the greatest of:", *map(str, self.model.lines)]
        return Text("\n".join(lines))


class _Search:
    """The runs of one `fit`, and what they tell: `low` fits, `high` does not."""

    def __init__(self, fn, make_batch, limit, backend, numpy):
        self.fn, self.make_batch, self.limit = fn, make_batch, limit
        self.backend, self.numpy = backend, numpy
        self.runs, self.samples, self.model = [], [], None
        self.low, self.high = 0, None
        # Bytes that the model leaves to pages and to what is idle, from the first
        # refusal on until a run fits.
        self.slack, self.page = 0, 1
        self.step = 1
        # Whether the model that was made without the last run has told its peak.
        self.exact = False

    def run(self, batch: int, purpose: str) -> bool:
        """Run a batch under the limit; return whether it fits."""
        trace = record(EVENTS) if purpose == "model" else contextlib.nullcontext()
        error = None
        with on_its_own(self.backend, self.limit, self.numpy) as own, trace:
            try:
                check_computed(self.fn(self._batch(batch)))
            except Exception as found:
                error = found
            stats, self.page = own.stats(), getattr(own, "page_nbytes", 1)
            fits = error is None
            # A refusal may have led to another error.
            if not (
                fits
                or isinstance(error, MemoryError)
                or own.relief()["out_of_memory_errors"]
            ):
                raise error
            # Its traceback holds frames, and these their arrays.
            error = None
        made = Run(
            batch, fits, stats["peak_bytes"], stats["peak_reserved_bytes"], purpose
        )
        self.runs.append(made)
        if fits and purpose == "model":
            births = births_on(trace._recorder, own)
            self.samples.append(Sample(batch, made.peak_bytes, births))
            if len(self.samples) > 1:
                self.model = PeakModel.through(*self.samples[-2:])
        elif fits:
            self.low, self.slack = batch, 0
            self.exact = self.model is not None and (
                self.model.at(batch) == made.peak_bytes
            )
        elif purpose == "confirm":
            self.slack = self._overhead() if self.high is None else 2 * self.slack
            self.high = batch
        return fits

    def _overhead(self):
        """Return what the largest run that fits held besides its peak, or a page."""
        last = max((each for each in self.runs if each.fits), default=self.runs[-1])
        return max(last.reserved_bytes - last.peak_bytes, self.page)

    def _batch(self, n):
        batch = made_of(self.make_batch(n))
        kinds = (NDArray, np.ndarray) if self.numpy else NDArray
        if not any(isinstance(each, kinds) for each in leaves(batch)):
            msg = (
                f"make_batch({n}) returned {type(batch).__name__}, in which there is "
                "no array that counts; return arrays of ndx, or a shape: "
                "make_batch=lambda n: (n, 784)"
            )
            raise TypeError(msg)
        return batch

    def next_batch(self, most: int | None) -> int:
        """Return the batch to try: by the model or, once that was wrong, by halves."""
        if self.high is None:
            guess = self.model and self.model.largest(self.limit)
            if guess is None:
                guess = 4 * self.low if most is None else most
            elif guess <= self.low:
                # The function does with less: its workspaces have no arena, say.
                guess, self.step = self.low + self.step, 2 * self.step
        elif self.model and 0 < self.slack * _SLACK < self.limit:
            guess = self.model.largest(self.limit - self.slack)
        else:
            low = max(self.low, *(each.batch for each in self.samples), 1)
            far = self.high > 4 * low
            guess = math.isqrt(low * self.high) if far else (low + self.high) // 2
        top = self.high - 1 if self.high is not None else most
        return max(self.low + 1, guess if top is None else min(guess, top))

    def find(self, most: int | None) -> str:
        """Find the largest batch; return what bounds it."""
        for batch in (1, 2):
            if (most is None or batch <= most) and not self.run(batch, "model"):
                break
        while self.low != most and (self.high is None or self.high - self.low > 1):
            batch = self.next_batch(most)
            fits = self.run(batch, "confirm")
            new = self.high is None and batch not in (
                each.batch for each in self.samples
            )
            if fits and new and not self.exact:
                # The peak follows other lines here: record them.
                self.run(batch, "model")
            grows = self.model is None or self.model.largest(self.limit) is not None
            if not grows and most is None and batch > _FLAT:
                msg = (
                    f"the peak does not grow with the batch, up to {batch:,}: give "
                    "most=, the largest batch to try"
                )
                raise ValueError(msg)
        return "most" if self.low == most else "refused"


def fit(
    fn: Callable[[Any], Any],
    make_batch: Callable[[int], Any],
    limit: Size | None = None,
    *,
    most: int | None = None,
    backend: BackendLike | None = None,
    numpy: bool | None = None,
) -> Fit:
    """Find the largest batch n for which ``fn(make_batch(n))`` stays within a limit.

    Parameters
    ----------
    fn : callable
        A function of a batch.
    make_batch : callable
        Returns a batch of n: an array, a container of arrays, or what stands for one
        array, as in `estimate`: ``lambda n: (n, 784)``.
    limit : int or str, optional
        Bytes for the batch and for what is made of it, such as ``"2GiB"`` or ``"60%"``.
        Default: what is left of the limit of the backend now; without one, what its
        device has free.
    most : int, optional
        The largest batch to try.
    backend, numpy
        As for `estimate`.

    Returns
    -------
    Fit
        The batch, all runs, and the model of the peak; ``print`` shows a table.

    Raises
    ------
    ValueError
        If a batch of 1 does not fit, if the limit is 0 bytes, or if the peak does not
        grow with the batch and `most` is not given.
    TypeError
        If an argument is no function, or a batch has no array of ndx.

    Notes
    -----
    Two small batches are recorded. Each allocation of theirs has a line over n, and the
    greatest of these lines tells the batch. It is run, and so is the next one, to see
    that it is refused. Each run has a backend of its own with the limit: no refusal
    leaves the search, and memory is not exhausted. If a run differs from the model, it
    is recorded, too, and is a point of the next model; if it is refused, the rest is
    searched by halves. It is supposed that a larger batch needs more memory than a
    smaller one. A function that is refused memory, but returns, fits: one whose
    workspaces go on without an arena, say.

    What exists already, such as the weights of a model, does not count: it is no part
    of what `limit` bounds. The notes of `estimate` hold; `fn` is called several times.

    Examples
    --------
    >>> import ndx
    >>> weights = ndx.ones((784, 10))
    >>> found = ndx.memory.fit(lambda x: x @ weights, lambda n: (n, 784), "64MiB")
    >>> found.model.lines[0].per_item * int(found) == found.peak_bytes <= 64 * 2**20
    True
    """
    check_function(fn, "fn")
    check_function(make_batch, "make_batch")
    most = None if most is None else at_least(most, "most", 1)
    nbytes = _bytes_for(limit, backend)
    search = _Search(fn, make_batch, nbytes, backend, numpy)
    bound = search.find(most)
    if not search.low:
        msg = (
            f"no batch fits in {nbytes:,} B: fn(make_batch(1)) was refused memory when "
            f"it had {search.runs[-1].peak_bytes:,} B; ndx.memory.estimate(fn, "
            "make_batch(1)) tells what needs it"
        )
        raise ValueError(msg)
    peak = max(
        each.peak_bytes
        for each in search.runs
        if each.batch == search.low and each.purpose == "confirm"
    )
    return Fit(search.low, peak, nbytes, bound, tuple(search.runs), search.model)


def _bytes_for(limit: Size | None, backend: BackendLike | None) -> int:
    found = backend_of(backend)
    free, total = found.memory_info()
    if limit is not None:
        nbytes = parse_limit(limit, total)
    elif found.limit is not None:
        nbytes = max(0, found.limit - allocated_by(found))
    elif free is not None:
        nbytes = free
    else:
        msg = f"{found!r} has no limit, and does not tell what is free: give limit="
        raise ValueError(msg)
    if not nbytes:
        msg = f"limit={limit!r} leaves 0 bytes, in which nothing fits; give more"
        raise ValueError(msg)
    return nbytes

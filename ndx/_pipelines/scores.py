"""What is kept of scores until their ranking is known: all of them, or a histogram."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import ndx

__all__ = ["Batch", "Histogram", "ScoreBuffer", "Steps"]


class Batch(NamedTuple):
    """Scores of a batch, checked: arrays of the CPU.

    Attributes
    ----------
    scores, positive : NDArray
        Of shape (n, columns); `positive` is bool.
    weights : NDArray of float64
        Of shape (n,).
    """

    scores: ndx.NDArray
    positive: ndx.NDArray
    weights: ndx.NDArray


class Steps(NamedTuple):
    """How counts rise as the threshold falls; arrays of shape (steps,).

    Attributes
    ----------
    thresholds : NDArray
        From the largest to the least.
    positive, negative : NDArray of float64
        The weight of the samples whose score is at least the threshold.
    """

    thresholds: ndx.NDArray
    positive: ndx.NDArray
    negative: ndx.NDArray


class ScoreBuffer:
    """All scores, in arrays that grow by doubling and are used again after a reset.

    Parameters
    ----------
    capacity : int
        The rows that are allocated at first.
    """

    def __init__(self, capacity: int) -> None:
        self._first = capacity
        self.reset()
        self._arrays: dict[str, ndx.NDArray] = {}

    def reset(self) -> None:
        """Forget all scores, and keep the memory."""
        self.rows = 0

    def add(self, batch: Batch) -> None:
        """Keep a batch, but for samples of weight 0."""
        given: dict[str, ndx.NDArray] = batch._asdict()
        some = batch.weights > 0
        if not ndx.all(some):
            given = {name: x[some] for name, x in given.items()}
        self._append(given)

    def merge(self, other: object) -> bool:
        """Keep all scores of another buffer, too; return whether it is one."""
        if not isinstance(other, ScoreBuffer):
            return False
        if other.rows:
            self._append({name: x[: other.rows] for name, x in other._arrays.items()})
        return True

    def _append(self, given: dict[str, ndx.NDArray]) -> None:
        stop = self.rows + given["scores"].shape[0]
        for name, x in given.items():
            self._room(name, x, stop)[self.rows : stop] = x
        self.rows = stop

    def _room(self, name: str, x: ndx.NDArray, rows: int) -> ndx.NDArray:
        """Return the array that is to hold `rows` rows like those of `x`."""
        old = self._arrays.get(name)
        held = 0 if old is None else old.shape[0]
        dtype = x.dtype if old is None else ndx.result_type(old, x)
        if old is not None and rows <= held and dtype == old.dtype:
            return old
        size = held if rows <= held else max(rows, 2 * held, self._first)
        with ndx.no_workspace():
            new = ndx.empty((size, *x.shape[1:]), dtype=dtype, device="cpu")
            if old is not None:
                new[: self.rows] = old[: self.rows]
        self._arrays[name] = new
        return new

    def steps(self, column: int) -> Steps:
        """Return the counts of one column, at each distinct score."""
        if not self.rows:
            return _no_steps()
        kept = {name: x[: self.rows] for name, x in self._arrays.items()}
        scores = kept["scores"][:, column]
        order = ndx.argsort(scores, descending=True)
        scores = ndx.take(scores, order)
        weights = ndx.take(kept["weights"], order)
        positive = ndx.take(kept["positive"][:, column], order)
        # Samples of one score count together: only the last of them is a step.
        last = ndx.ones(1, dtype=ndx.bool, device="cpu")
        ends = ndx.concat([scores[1:] != scores[:-1], last])
        sums = [
            ndx.cumulative_sum(ndx.where(each, weights, 0.0))[ends]
            for each in (positive, ~positive)
        ]
        return Steps(scores[ends], sums[0], sums[1])


class Histogram:
    """The weights of scores between fixed thresholds; its size is fixed, too.

    Parameters
    ----------
    thresholds : int or sequence of float
        The number of steps between 0 and 1, or the thresholds themselves.
    """

    def __init__(self, thresholds: int | Sequence[float]) -> None:
        if isinstance(thresholds, np.integer):
            # A narrow one would overflow.
            thresholds = int(thresholds)
        self.thresholds = _checked(thresholds)
        self._shares = isinstance(thresholds, int)
        self._counts: ndx.NDArray | None = None
        self._columns = 0

    def reset(self) -> None:
        """Forget all scores, and keep the memory."""
        if self._counts is not None:
            self._counts[...] = 0.0

    @property
    def _bins(self) -> int:
        # The first bin is that of scores below all thresholds.
        return self.thresholds.shape[0] + 1

    def add(self, batch: Batch) -> None:
        """Count a batch."""
        columns = batch.scores.shape[1]
        if self._shares and not ndx.all((batch.scores >= 0) & (batch.scores <= 1)):
            msg = (
                "scores are not between 0 and 1, as a number of thresholds needs; give "
                "the thresholds themselves, or None for exact curves"
            )
            raise ValueError(msg)
        counts = self._allocated(columns)
        scores = batch.scores
        if not ndx.isdtype(scores.dtype, "real floating"):
            scores = ndx.astype(scores, ndx.float64)
        thresholds = _rounded(self.thresholds, scores.dtype)
        bins = ndx.searchsorted(thresholds, ndx.reshape(scores, (-1,)), side="right")
        place = ndx.reshape(bins, scores.shape) + self._bins * ndx.arange(
            columns, device="cpu"
        )
        place = place + batch.positive * (self._bins * columns)
        weights = ndx.broadcast_to(batch.weights[:, None], scores.shape)
        np.add.at(counts, ndx.reshape(place, (-1,)), ndx.reshape(weights, (-1,)))

    def _allocated(self, columns: int) -> ndx.NDArray:
        if self._counts is None:
            with ndx.no_workspace():
                self._counts = ndx.zeros(2 * columns * self._bins, device="cpu")
            self._columns = columns
        return self._counts

    def merge(self, other: object) -> bool:
        """Count all scores of another one, too; return whether it has the same bins."""
        if not isinstance(other, Histogram):
            return False
        if self.thresholds.tolist() != other.thresholds.tolist():
            return False
        if other._counts is not None:
            counts = self._allocated(other._columns)
            counts += other._counts
        return True

    def steps(self, column: int) -> Steps:
        """Return the counts of one column, at each threshold and below all."""
        if self._counts is None:
            return _no_steps()
        shape = (2, self._columns, self._bins)
        counts = ndx.reshape(self._counts, shape)[:, column, ::-1]
        sums = ndx.cumulative_sum(counts, axis=1)
        lowest = ndx.full((1,), -ndx.inf, device="cpu")
        falling = ndx.concat([self.thresholds[::-1], lowest])
        return Steps(falling, sums[1], sums[0])


def _rounded(thresholds: ndx.NDArray, dtype: Any) -> ndx.NDArray:
    """Return thresholds in the dtype of scores: 0.7 is less there than in float64.

    A score of 0 reaches no positive threshold, and one of -inf no finite one.
    """
    if dtype == thresholds.dtype:
        return thresholds
    with np.errstate(over="ignore", under="ignore"):
        found = ndx.astype(thresholds, dtype)
    least = float(np.finfo(dtype).smallest_subnormal)
    found = ndx.where((thresholds > 0) & (found == 0), least, found)
    lowest = float(ndx.finfo(dtype).min)
    return ndx.where((thresholds > -ndx.inf) & (found == -ndx.inf), lowest, found)


def _no_steps() -> Steps:
    return Steps(*(ndx.empty(0, device="cpu") for _ in range(3)))


def _checked(thresholds: Any) -> ndx.NDArray:
    with ndx.no_workspace():
        if isinstance(thresholds, int) and not isinstance(thresholds, bool):
            if thresholds < 1:
                msg = f"thresholds={thresholds} is not valid; there is at least 1 step"
                raise ValueError(msg)
            # One division each: a score that is written i/n is at its threshold.
            return ndx.arange(thresholds + 1, device="cpu") / thresholds
        try:
            found = ndx.asarray(thresholds, dtype=ndx.float64, copy=True, device="cpu")
        except (TypeError, ValueError):
            found = ndx.empty(0, device="cpu")
        if found.ndim != 1 or not found.size or not ndx.all(found[1:] > found[:-1]):
            msg = (
                f"thresholds={thresholds!r} is not valid; it is a number of steps, or "
                "a list of thresholds, each larger than the one before"
            )
            raise ValueError(msg)
        return found

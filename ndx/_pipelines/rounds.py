"""Rounds of training: steps of all workers, then an average."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import ndx
from ndx._lib.trees import check_structure
from ndx._pipelines.averaging import add, copied, mean, mean_of_sums
from ndx._pipelines.errors import with_index
from ndx._pipelines.places import Place, Scoped
from ndx._pipelines.workers import Crew, Opened, Outcome

__all__ = ["Average", "Report", "Rounds", "replica"]

# Batches that wait for a worker or are in its hands: it always finds the next one.
WAITING = 2


def replica(step: Callable[..., Any], place: Place, gradients: bool) -> Opened:
    """Return what opens a worker's own copy of the parameters, in its thread."""

    @contextlib.contextmanager
    def opened() -> Iterator[Callable[..., Any]]:
        with place.entered() as scoped:
            kind = _Gradients if gradients else _Replica
            yield kind(step, scoped, place).step

    return opened


class _Replica:
    """The parameters of one worker; used in its thread only."""

    def __init__(self, step: Callable[..., Any], scoped: Scoped, place: Place):
        self._device = place.device
        self._params: Any = None

        # In the scope: neither the score nor a temporary outlives the step.
        def stepped(params: Any, batch: Any) -> tuple[Any, float]:
            made, score = _checked(step(params, place.moved(batch)))
            return made, float(score)

        self._stepped = scoped(stepped)

    def step(self, batch: Any, fresh: Any) -> tuple[Any, float]:
        """Return the parameters after a step, and its score.

        The parameters from which a round begins are `fresh`; None: those that this
        worker had.
        """
        if fresh is not None:
            self._params = copied(fresh[0], self._device)
        self._params, score = self._stepped(self._params, batch)
        return self._params, score


class _Gradients:
    """The sum of the gradients of one worker, of a round; used in its thread only."""

    def __init__(self, step: Callable[..., Any], scoped: Scoped, place: Place):
        self._device = place.device
        self._params: Any = None
        self._sum: Any = None

        def stepped(params: Any, batch: Any, before: Any) -> tuple[Any, float]:
            found, score = _checked(step(params, place.moved(batch)))
            return found if before is None else add(before, found), float(score)

        self._stepped = scoped(stepped)

    def step(self, batch: Any, fresh: Any) -> tuple[Any, float]:
        """Return the sum of the gradients of the round so far, and the score."""
        if fresh is not None:
            self._sum, self._params = None, fresh[0]
            if self._device is not None:
                self._params = copied(self._params, self._device)
        self._sum, score = self._stepped(self._params, batch, self._sum)
        return self._sum, score


def _checked(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        raise TypeError(
            "step must return a tuple of two: the new parameters (with update=: the "
            f"gradients) and the score, not {type(made).__name__}"
            + (f" of {len(made)}" if isinstance(made, tuple) else "")
        )
    return made


class Average:
    """The parameters that workers begin a round with, and what becomes of them.

    Parameters
    ----------
    params : tree of arrays
        Nobody else's.
    update : callable or None
        What makes new parameters of gradients; None: workers return parameters.
    scoped : callable
        Decorates what computes.
    """

    def __init__(
        self, params: Any, update: Callable[[Any, Any], Any] | None, scoped: Scoped
    ):
        self.params = params
        self.count = 0
        self.updates = update is not None
        self._mean = scoped(mean)
        if update is not None:
            self._updated = scoped(
                lambda params, sums, count: update(params, mean_of_sums(sums, count))
            )

    def take(self, trees: list[Any], counts: list[int]) -> None:
        """Average the results of a round, in the order of the workers."""
        if self.updates:
            new = self._updated(self.params, trees, sum(counts))
            if new is None and self.params is not None:
                raise TypeError(
                    "update returned None; it must return the new parameters, also if "
                    "it has changed the old ones"
                )
            check_structure(self.params, new)
            self.params = new
        else:
            # Else the next step would fail, at a place that says nothing.
            check_structure(self.params, trees[0])
            self.params = self._mean(trees, counts)
        self.count += 1


class Report:
    """Scores, for the user and for the result."""

    def __init__(
        self,
        on_score: Callable[[int, float], Any] | None,
        after_averaging: bool,
        bar: Any,
    ):
        self.scores: list[float] = []
        self.is_last = False
        self.after_averaging = after_averaging
        self.bar = bar
        self._on_score = on_score

    def report(self, batches: int, score: float) -> None:
        """Report one score; note whether that was enough."""
        self.scores.append(score)
        self.bar.set_postfix(score=f"{score:.4g}")
        if self._on_score is not None and _is_true(self._on_score(batches, score)):
            self.is_last = True


def _is_true(answer: Any) -> bool:
    """Return whether a function says true: it may return other things for nobody."""
    if isinstance(answer, ndx.NDArray | np.ndarray) and answer.ndim == 0:
        answer = answer.item()
    return isinstance(answer, bool | np.bool_) and bool(answer)


class Rounds:
    """What the calling thread does: it hands out batches, and averages.

    Parameters
    ----------
    crew : Crew
        The workers, with tasks of their own.
    workers : int
        How many there are.
    every : int
        Batches for each worker in a round.
    average : Average
        What becomes of the results.
    report : Report
        What becomes of the scores.
    """

    def __init__(
        self, crew: Crew, workers: int, every: int, average: Average, report: Report
    ):
        self._crew, self._workers, self._every = crew, workers, every
        self.average, self.report = average, report
        self.batches = 0

    def run(self, source: Iterator[Any]) -> None:
        """Do rounds until there are no more batches, or the user has enough."""
        full = self._workers * self._every
        while self._round(source, full) == full and not self.report.is_last:
            pass

    def _round(self, source: Iterator[Any], full: int) -> int:
        """Do a round of up to `full` batches; return how many there were."""
        found: dict[int, tuple[Any, float]] = {}
        first = self.batches
        for given in range(full):
            while given - len(found) >= WAITING * self._workers:
                self._take_one(found)
            try:
                batch = next(source)
            except StopIteration:
                break
            except Exception as error:
                with_index(error, "the batches, at batch", self.batches)
                raise
            self._crew.put(
                self.batches, batch, self._fresh(given), worker=given % self._workers
            )
            self.batches += 1
            del batch
        count = self.batches - first
        while len(found) < count:
            self._take_one(found)
        if count:
            self._finish(first, count, found)
        return count

    def _fresh(self, given: int) -> tuple[Any] | None:
        """Return the parameters for a worker's first batch of a round, in a tuple."""
        alone = self._workers == 1 and not self.average.updates and self.average.count
        return None if given >= self._workers or alone else (self.average.params,)

    def _take_one(self, found: dict[int, tuple[Any, float]]) -> None:
        outcome = self._crew.take()
        if outcome.error is None and outcome.key is not None:
            found[outcome.key] = outcome.value
            self.report.bar.update()
            return
        outcome = _first_failure([outcome, *self._crew.close()])
        try:
            outcome.result("batch")
        finally:
            # The traceback has this frame.
            del outcome

    def _finish(self, first: int, count: int, found: dict[int, Any]) -> None:
        """Average the round and report its scores."""
        scores = [found[first + i][1] for i in range(count)]
        if not self.report.after_averaging:
            for i, score in enumerate(scores):
                self.report.report(first + i + 1, score)
        taking = min(self._workers, count)
        counts = [len(range(i, count, self._workers)) for i in range(taking)]
        # The last task of each worker has what it has made.
        lasts = [i + (counts[i] - 1) * self._workers for i in range(taking)]
        trees = [found[first + i][0] for i in lasts]
        found.clear()
        self.average.take(trees, counts)
        if self.report.after_averaging:
            self.report.report(self.batches, sum(scores) / count)


def _first_failure(outcomes: list[Outcome]) -> Outcome:
    """Return the error of the first batch that has one.

    A worker that could not start comes before all batches.
    """
    failed = [each for each in outcomes if each.error is not None]
    return min(failed, key=lambda each: -1 if each.key is None else each.key)

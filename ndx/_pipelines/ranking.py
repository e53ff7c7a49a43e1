"""Ranking: receiver operating characteristics, and the areas under them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import ndx
from ndx._lib.tables import Table, format_count, format_share, literal
from ndx._pipelines.metric import no_merge
from ndx._pipelines.samples import (
    NaN,
    as_array,
    checked_nan,
    flat_weights,
    kept,
    labels_of,
    on_host,
    without_bad,
)
from ndx._pipelines.scores import Batch, Histogram, ScoreBuffer, Steps
from ndx._pipelines.switch import workspaces_used
from ndx._pipelines.tables import class_names, weighted_mean

__all__ = ["ROC", "ROCCurve", "ROCResult"]

_CONFIG = ndx.WorkspaceConfig(learn="liveness", escape="detach")
# Beyond so many classes, tables and pictures show the first only.
_SHOWN = 20
_LABELLED = 10


class ROC:
    """How well scores rank: the receiver operating characteristic, and its area.

    Parameters
    ----------
    thresholds : int or sequence of float, optional
        None: exact. All scores are kept, which takes the bytes of a score plus 9 for
        each sample (plus 1 for each further class); the memory is used again after
        `reset`. An int: a histogram with so many steps between 0 and 1, of a fixed
        size, for scores in that range. A sequence of rising thresholds: the same with
        these, for any scores. Thresholds are rounded to the dtype of the scores: a
        float32 0.7 is at 7/10.
    classes : int or iterable of str, optional
        The number of columns of scores, or their names. Default: those of the first
        batch.
    capacity : int
        For exact ones: how many samples to allocate room for at first. More are kept,
        too.
    nan : {"raise", "omit"}
        Whether a sample with NaN is an error, or is left out.
    name : str
        Its name in the report.

    Notes
    -----
    ND4J's ``ROC`` (binary), ``ROCMultiClass`` (one against the rest) and ``ROCBinary``
    (columns that are independent of each other), with their ``thresholdSteps``.

    Examples
    --------
    >>> import ndx
    >>> metric = ndx.metrics.ROC()
    >>> scores = ndx.asarray([0.1, 0.4, 0.35, 0.8])
    >>> metric.update(ndx.asarray([0, 0, 1, 1]), scores)
    >>> metric.result().auc()
    0.75
    """

    def __init__(
        self,
        thresholds: int | Sequence[float] | None = None,
        *,
        classes: int | Iterable[str] | None = None,
        capacity: int = 0,
        nan: NaN = "raise",
        name: str = "ROC",
    ) -> None:
        self.name = name
        self._given = None if classes is None else class_names(classes)
        self._columns = 0 if self._given is None else len(self._given)
        self._nan, self._omitted = checked_nan(nan), 0
        self._store: ScoreBuffer | Histogram
        if thresholds is None:
            self._store = ScoreBuffer(capacity)
        else:
            self._store = Histogram(thresholds)

    def reset(self) -> None:
        """Forget all batches; the memory is kept for the next ones."""
        self._omitted = 0
        self._store.reset()

    def update(self, expected: Any, outputs: Any, weights: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        expected : array
            For scores of shape (n,) or (n, 1): whether a sample is positive, as bools
            or 0 and 1, of the same shape or (n,). For scores of shape (n, classes):
            class numbers, of shape (n,); or which classes a sample has, as bools or 0
            and 1, of shape (n, classes). There may be more axes before the last.
        outputs : array
            Real scores; larger ones are for positive samples.
        weights : array of float or bool, optional
            Of shape (n,): the weight of each sample, or a mask. What a sample of weight
            0 holds is not looked at.

        Raises
        ------
        ValueError
            If shapes don't fit, expected values are not valid, scores are outside of
            [0, 1] (with an int of thresholds), or there is NaN (with ``nan="raise"``).
        """
        expected = on_host(as_array(expected, "expected values"))
        scores = on_host(as_array(outputs, "outputs"))
        if not ndx.isdtype(scores.dtype, ("bool", "integral", "real floating")):
            msg = f"outputs of dtype {scores.dtype} can't be ranked; scores are real"
            raise TypeError(msg)
        # A column of scores needs no axis of its own.
        if scores.ndim == 1 or (
            self._columns == 1
            and scores.shape == expected.shape
            and scores.shape[-1] != 1
        ):
            scores = scores[..., None]
        shape, columns = scores.shape[:-1], self._checked(scores.shape)
        scores = ndx.reshape(scores, (-1, columns))
        given = flat_weights(weights, shape)
        omitted = 0
        if ndx.isdtype(scores.dtype, "real floating"):
            bad = ndx.any(ndx.isnan(scores), axis=1)
            given, omitted = without_bad(bad, given, self._nan, "NaN")
        if ndx.isdtype(expected.dtype, "real floating"):
            missing = ndx.isnan(expected)
            if ndx.any(missing) and missing.size % given.size == 0:
                bad = ndx.any(ndx.reshape(missing, (given.size, -1)), axis=1)
                given, more = without_bad(bad, given, self._nan, "NaN")
                omitted += more
                expected = ndx.where(missing, 0.0, expected)
        positive = _positive(expected, shape, columns, given)
        self._store.add(Batch(kept(scores, given[:, None]), positive, given))
        # Only now: a batch that was refused changes nothing.
        self._columns = columns
        self._omitted += omitted

    def _checked(self, shape: tuple[int, ...]) -> int:
        columns = shape[-1] if shape else 0
        if columns < 1 or (self._columns and columns != self._columns):
            there = f"{self._columns}" if self._columns else "at least one"
            msg = (
                f"outputs of shape {shape} have {columns} columns of scores, and the "
                f"metric has {there}"
            )
            raise ValueError(msg)
        return columns

    def result(self) -> ROCResult:
        """Return the curves of all batches.

        Returns
        -------
        ROCResult
            Later updates don't change it.
        """
        names = self._given or class_names(self._columns)
        if self._given is None and self._columns == 1:
            names = ("positive",)
        curves = []
        with ndx.no_workspace():
            # Temporaries of the second column and later ones lie in one arena.
            scope: AbstractContextManager[Any] = nullcontext()
            if workspaces_used():
                scope = ndx.workspace(config=_CONFIG)
            for column, name in enumerate(names):
                with scope:
                    curves.append(_curve(name, self._store.steps(column)))
        return ROCResult(tuple(curves), self._omitted)

    def merge(self, other: ROC) -> None:
        """Count what another metric of the same thresholds has counted, too.

        Parameters
        ----------
        other : ROC

        Raises
        ------
        TypeError, ValueError
            If it is another metric, or has other classes or thresholds.
        """
        if type(other) is not ROC or other._given != self._given:
            raise no_merge(self, other)
        columns = {self._columns, other._columns} - {0}
        if len(columns) > 1 or not self._store.merge(other._store):
            raise no_merge(self, other)
        self._columns = max(columns, default=0)
        self._omitted += other._omitted


def _positive(
    expected: ndx.NDArray,
    shape: tuple[int, ...],
    columns: int,
    weights: ndx.NDArray,
) -> ndx.NDArray:
    """Return which samples are positive in which column, of shape (n, columns)."""
    if expected.shape == (*shape, columns):
        flat = kept(ndx.reshape(expected, (-1, columns)), weights[:, None])
        if flat.dtype != ndx.bool:
            if not ndx.all((flat == 0) | (flat == 1)):
                msg = (
                    "expected values of the same shape as the scores say which classes "
                    "a sample has: as bools, or 0 and 1"
                )
                raise ValueError(msg)
            flat = flat == 1
        return flat
    if expected.shape != shape:
        msg = (
            f"expected values of shape {expected.shape} don't fit scores of shape "
            f"{(*shape, columns)}; valid are {shape} and {(*shape, columns)}"
        )
        raise ValueError(msg)
    flat = ndx.reshape(expected, (-1,))
    if columns == 1:
        return ndx.reshape(labels_of(flat, 2, weights, "expected ones") == 1, (-1, 1))
    labels = labels_of(flat, columns, weights, "expected ones")
    return labels[:, None] == ndx.arange(columns, device="cpu")


def _curve(name: str, steps: Steps) -> ROCCurve:
    """Return the curve of counts that rise as the threshold falls."""
    start, first = ndx.zeros(1, device="cpu"), ndx.full(1, ndx.inf, device="cpu")
    hits = ndx.concat([start, steps.positive])
    alarms = ndx.concat([start, steps.negative])
    thresholds = ndx.concat([first, ndx.astype(steps.thresholds, ndx.float64)])
    positives, negatives = float(hits[-1]), float(alarms[-1])
    tpr, fpr = _divided(hits, positives), _divided(alarms, negatives)
    area = math.nan
    if positives and negatives:
        area = float(ndx.vecdot(fpr[1:] - fpr[:-1], tpr[1:] + tpr[:-1])) / 2
    named = ndx.where(hits + alarms > 0, hits + alarms, 1.0)
    rises = (hits[1:] - hits[:-1]) * (hits / named)[1:]
    corners = _corners(hits, alarms)
    return ROCCurve(
        name,
        fpr[corners],
        tpr[corners],
        thresholds[corners],
        area,
        float(ndx.sum(rises)) / positives if positives else math.nan,
        positives,
        negatives,
    )


def _divided(counts: ndx.NDArray, total: float) -> ndx.NDArray:
    return counts / total if total else ndx.full_like(counts, math.nan)


def _corners(hits: ndx.NDArray, alarms: ndx.NDArray) -> ndx.NDArray:
    """Return which points the curve needs: the ends, and where its slope changes."""
    if hits.shape[0] < 3:
        return ndx.ones(hits.shape, dtype=ndx.bool, device="cpu")
    end = ndx.ones(1, dtype=ndx.bool, device="cpu")
    turns = ndx.zeros(hits.shape[0] - 2, dtype=ndx.bool, device="cpu")
    for counts in (hits, alarms):
        rises = counts[1:] - counts[:-1]
        turns = turns | (rises[1:] != rises[:-1])
    return ndx.concat([end, turns, end])


@dataclass(frozen=True, eq=False)
class ROCCurve:
    """The receiver operating characteristic of one column of scores.

    Attributes
    ----------
    name : str
        Of the class.
    fpr, tpr : NDArray
        The false and the true positive rate, of shape (points,), from (0, 0) to (1, 1);
        points on a straight line are left out. NaN without negative or positive
        samples.
    thresholds : NDArray
        The least score that counts as positive, at each point; infinity at (0, 0).
    auc : float
        The area under the curve, by trapezoids; NaN if a rate is.
    average_precision : float
        The mean precision, weighted by the rise of recall at each threshold; NaN
        without positive samples.
    positives, negatives : float
        The weight (without weights: the number) of samples.

    Notes
    -----
    As scikit-learn's ``roc_curve``, ``roc_auc_score``, ``average_precision_score``.
    """

    name: str
    fpr: ndx.NDArray
    tpr: ndx.NDArray
    thresholds: ndx.NDArray
    auc: float
    average_precision: float
    positives: float
    negatives: float


@dataclass(frozen=True, eq=False)
class ROCResult:
    """What a `ROC` has found.

    Attributes
    ----------
    curves : tuple of ROCCurve
        One for each column of scores; of one class against the rest, where there are
        several.
    omitted : int
        Samples left out because of NaN.
    """

    curves: tuple[ROCCurve, ...]
    omitted: int = 0

    def auc(
        self, average: Literal["macro", "weighted"] | None = "macro"
    ) -> float | ndx.NDArray:
        """Return the area under the curve.

        Parameters
        ----------
        average : {"macro", "weighted"}, optional
            The mean of the classes for which it is defined, all alike or by the weight
            of their samples. None: the area of each class.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``. NaN where there are no
            positive or no negative samples.

        Raises
        ------
        ValueError
            If there is no such average.
        """
        return self._averaged([curve.auc for curve in self.curves], average)

    def average_precision(
        self, average: Literal["macro", "weighted"] | None = "macro"
    ) -> float | ndx.NDArray:
        """Return the average precision: the area under precision over recall.

        Parameters
        ----------
        average : {"macro", "weighted"}, optional
            As for `auc`.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``. NaN where there are no
            positive samples.

        Raises
        ------
        ValueError
            If there is no such average.
        """
        found = [curve.average_precision for curve in self.curves]
        return self._averaged(found, average)

    def _averaged(self, each: list[float], average: str | None) -> float | ndx.NDArray:
        values = ndx.asarray(each, dtype=ndx.float64, device="cpu")
        if average is None:
            return values
        if average == "macro":
            return weighted_mean(values)
        if average == "weighted":
            support = [curve.positives for curve in self.curves]
            return weighted_mean(values, ndx.asarray(support, device="cpu"))
        msg = (
            f"average={average!r} is not valid; valid are 'macro', 'weighted', and "
            "None for the value of each class"
        )
        raise ValueError(msg)

    def tables(self) -> list[Table]:
        """Return the tables of a report."""
        rows: list[tuple[str, ...]] = [
            (
                curve.name,
                format_share(curve.auc),
                format_share(curve.average_precision),
                format_count(curve.positives),
                format_count(curve.negatives),
            )
            for curve in self.curves[:_SHOWN]
        ]
        if len(self.curves) > _SHOWN:
            rows.append((f"... {len(self.curves) - _SHOWN} more", "", "", "", ""))
        if len(self.curves) > 1:
            for kind in ("macro", "weighted"):
                found = [self.auc(kind), self.average_precision(kind)]
                rows.append((f"{kind} mean", *map(format_share, found), "", ""))
        if self.omitted:
            rows.append(("omitted (NaN)", "", "", str(self.omitted), ""))
        header = ("", "AUC", "average precision", "positive", "negative")
        return [Table("receiver operating characteristic", header, rows)]

    def plot(self, axes: Any) -> None:
        """Draw the curves; the legend has the areas.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
        """
        axes.plot([0, 1], [0, 1], color="0.7", linestyle="--", linewidth=1)
        mean = "mean " * (len(self.curves) > 1)
        shown = [curve for curve in self.curves if not math.isnan(curve.auc)]
        for i, curve in enumerate(shown):
            axes.plot(
                curve.fpr.tolist(),
                curve.tpr.tolist(),
                linewidth=1.4 if len(shown) <= _LABELLED else 0.6,
                label=f"{literal(curve.name)}: {curve.auc:.4f}"
                if i < _LABELLED
                else None,
            )
        axes.set(
            xlabel="false positive rate",
            ylabel="true positive rate",
            title=f"{mean}area under the curve {self.auc():.4f}",
        )
        if shown:
            axes.legend(loc="lower right", fontsize="small")

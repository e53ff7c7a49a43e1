"""Ranking: receiver operating characteristics, and the areas under them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

import ndx
from ndx._lib.tables import Table, format_count, format_share, literal
from ndx._pipelines.metric import (
    Counting,
    NaN,
    as_array,
    check_average,
    flat_weights,
    kept,
    labels_of,
    on_host,
    scikit_learn,
    table_of_columns,
    without_bad,
)

__all__ = ["ROC", "ROCCurve", "ROCResult"]

# Beyond so many classes, the legend of a picture has the first only.
_LABELLED = 10


class ROC(Counting):
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

    Raises
    ------
    ImportError
        If scikit-learn is not installed, which computes the curves.

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
        # Not only when all batches are counted.
        scikit_learn("ndx.metrics.ROC")
        super().__init__(name, classes, nan)
        self._store = (
            _Scores(capacity) if thresholds is None else _Histogram(thresholds)
        )
        self._options = self._given, self._store.thresholds.tolist()

    def reset(self) -> None:
        """Forget all batches; the memory is kept for the next ones."""
        super().reset()
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
        self._store.add(kept(scores, given[:, None]), positive, given)
        # Only now: a batch that was refused changes nothing.
        self._allocate(columns)
        self._omitted += omitted

    def _checked(self, shape: tuple[int, ...]) -> int:
        columns = shape[-1] if shape else 0
        if columns < 1 or (self._columns and columns != self._columns):
            there = f"{self._columns}" if self._columns else "at least one"
            raise ValueError(
                f"outputs of shape {shape} have {columns} columns of scores, and the "
                f"metric has {there}"
            )
        return columns

    def result(self) -> ROCResult:
        """Return the curves of all batches.

        Returns
        -------
        ROCResult
            Later updates don't change it.
        """
        names = self._names
        if self._given is None and self._columns == 1:
            names = ("positive",)
        metrics = scikit_learn("ndx.metrics.ROC")
        with ndx.no_workspace():
            curves = [
                _curve(metrics, name, self._store.samples(column))
                for column, name in enumerate(names)
            ]
        return ROCResult(tuple(curves), self._omitted)

    def _add(self, other: ROC) -> None:
        self._store.merge(other._store)


# ---- What is kept of scores until their ranking is known -----------------------------


# One column of scores, for scikit-learn: the scores that there are, in rising order;
# where the score of each sample is among them (it ranks no infinities); whether each
# is positive; its weight.
Samples: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


class _Scores:
    """All scores, in arrays that grow by doubling and are used again after a reset."""

    thresholds = np.empty(0)

    def __init__(self, capacity: int) -> None:
        self._first = capacity
        self._rows = 0
        self._arrays: dict[str, ndx.NDArray] = {}

    def reset(self) -> None:
        self._rows = 0

    def add(
        self, scores: ndx.NDArray, positive: ndx.NDArray, weights: ndx.NDArray
    ) -> None:
        """Keep a batch, but for samples of weight 0."""
        given = {"scores": scores, "positive": positive, "weights": weights}
        some = weights > 0
        if not ndx.all(some):
            given = {name: x[some] for name, x in given.items()}
        self._append(given)

    def merge(self, other: _Scores) -> None:
        self._append({name: x[: other._rows] for name, x in other._arrays.items()})

    def _append(self, given: dict[str, ndx.NDArray]) -> None:
        stop = self._rows
        for name, x in given.items():
            stop = self._rows + x.shape[0]
            self._room(name, x, stop)[self._rows : stop] = x
        self._rows = stop

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
                new[: self._rows] = old[: self._rows]
        self._arrays[name] = new
        return new

    def samples(self, column: int) -> Samples:
        """Return one column, for all samples."""
        if not self._rows:
            return _no_samples()
        kept = {name: np.asarray(x)[: self._rows] for name, x in self._arrays.items()}
        values, places = np.unique(kept["scores"][:, column], return_inverse=True)
        return values, places, kept["positive"][:, column], kept["weights"]


class _Histogram:
    """The weights of scores between fixed thresholds; its size is fixed, too."""

    def __init__(self, thresholds: int | Sequence[float]) -> None:
        if isinstance(thresholds, np.integer):
            # A narrow one would overflow.
            thresholds = int(thresholds)
        self.thresholds = _checked_thresholds(thresholds)
        self._shares = isinstance(thresholds, int)
        # The first bin is that of scores below all thresholds.
        self._bins = self.thresholds.shape[0] + 1
        self._counts: ndx.NDArray | None = None

    def reset(self) -> None:
        if self._counts is not None:
            self._counts[...] = 0.0

    def add(
        self, scores: ndx.NDArray, positive: ndx.NDArray, weights: ndx.NDArray
    ) -> None:
        """Count a batch."""
        if self._shares and not ndx.all((scores >= 0) & (scores <= 1)):
            raise ValueError(
                "scores are not between 0 and 1, as a number of thresholds needs; give "
                "the thresholds themselves, or None for exact curves"
            )
        if not ndx.isdtype(scores.dtype, "real floating"):
            scores = ndx.astype(scores, ndx.float64)
        thresholds = _rounded(self.thresholds, scores.dtype)
        bins = ndx.searchsorted(thresholds, ndx.reshape(scores, (-1,)), side="right")
        counts = self._allocated(scores.shape[1])
        # The place in the flat array: `add.at` is fast with a single index.
        side, columns = counts[0].size, ndx.arange(scores.shape[1], device="cpu")
        place = ndx.reshape(bins, scores.shape) + self._bins * columns + positive * side
        weights = ndx.broadcast_to(weights[:, None], scores.shape)
        flat = ndx.reshape(counts, (-1,), copy=False)
        np.add.at(flat, ndx.reshape(place, (-1,)), ndx.reshape(weights, (-1,)))

    def _allocated(self, columns: int) -> ndx.NDArray:
        if self._counts is None:
            with ndx.no_workspace():
                self._counts = ndx.zeros((2, columns, self._bins), device="cpu")
        return self._counts

    def merge(self, other: _Histogram) -> None:
        if other._counts is not None:
            counts = self._allocated(other._counts.shape[1])
            counts += other._counts

    def samples(self, column: int) -> Samples:
        """Return one column, as two samples for each step that has any."""
        if self._counts is None:
            return _no_samples()
        counts = np.asarray(self._counts)[:, column]
        positive, places = np.nonzero(counts)
        values = np.append(-np.inf, np.asarray(self.thresholds))
        return values, places, positive == 1, counts[positive, places]


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


def _no_samples() -> Samples:
    none = np.empty(0)
    return none, none.astype(np.intp), none.astype(np.bool), none


def _checked_thresholds(thresholds: Any) -> ndx.NDArray:
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
            raise ValueError(
                f"thresholds={thresholds!r} is not valid; it is a number of steps, or "
                "a list of thresholds, each larger than the one before"
            )
        return found


# ---- Curves --------------------------------------------------------------------------


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
                raise ValueError(
                    "expected values of the same shape as the scores say which classes "
                    "a sample has: as bools, or 0 and 1"
                )
            flat = flat == 1
        return flat
    if expected.shape != shape:
        raise ValueError(
            f"expected values of shape {expected.shape} don't fit scores of shape "
            f"{(*shape, columns)}; valid are {shape} and {(*shape, columns)}"
        )
    flat = ndx.reshape(expected, (-1,))
    if columns == 1:
        return ndx.reshape(labels_of(flat, 2, weights, "expected ones") == 1, (-1, 1))
    labels = labels_of(flat, columns, weights, "expected ones")
    return labels[:, None] == ndx.arange(columns, device="cpu")


def _curve(metrics: Any, name: str, samples: Samples) -> ROCCurve:
    """Return the curve of one column of scores, by scikit-learn."""
    values, places, positive, weights = samples
    positives = float(weights[positive].sum())
    negatives = float(weights[~positive].sum())
    fpr = tpr = thresholds = np.empty(0)
    area = precision = math.nan
    if positives:
        precision = metrics.average_precision_score(
            positive, places, sample_weight=weights
        )
    if positives and negatives:
        fpr, tpr, found = metrics.roc_curve(positive, places, sample_weight=weights)
        thresholds = np.append(np.inf, values[found[1:].astype(np.intp)])
        area = metrics.auc(fpr, tpr)
    return ROCCurve(
        name,
        *(ndx.asarray(x, copy=True, device="cpu") for x in (fpr, tpr, thresholds)),
        float(area),
        float(precision),
        positives,
        negatives,
    )


@dataclass(frozen=True, eq=False)
class ROCCurve:
    """The receiver operating characteristic of one column of scores.

    Attributes
    ----------
    name : str
        Of the class.
    fpr, tpr : NDArray
        The false and the true positive rate, of shape (points,), from (0, 0) to (1, 1);
        points on a straight line are left out. Empty without negative or positive
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
    By scikit-learn's ``roc_curve``, ``auc`` and ``average_precision_score``.
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
        return self._averaged("auc", average)

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
        return self._averaged("average_precision", average)

    def _averaged(self, measure: str, average: str | None) -> float | ndx.NDArray:
        check_average(average, ("macro", "weighted"))
        each = [getattr(curve, measure) for curve in self.curves]
        values = np.asarray(each, dtype=np.float64)
        if average is None:
            return ndx.asarray(values, device="cpu")
        some = ~np.isnan(values)
        support = np.asarray([curve.positives for curve in self.curves])[some]
        if not some.any():
            return math.nan
        by_support = average == "weighted" and support.any()
        weights = support if by_support else None
        return float(np.average(values[some], weights=weights))

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
            for curve in self.curves
        ]
        means = []
        if len(rows) > 1:
            for kind in ("macro", "weighted"):
                found = [self.auc(kind), self.average_precision(kind)]
                means.append((f"{kind} mean", *map(format_share, found), "", ""))
        omitted = ("omitted (NaN)", "", "", str(self.omitted), "")
        header = ("", "AUC", "average precision", "positive", "negative")
        title = "receiver operating characteristic"
        return table_of_columns(title, header, rows, means, omitted)

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

"""Classification: the confusion matrix, and what follows from it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

import ndx
from ndx._lib.tables import Table, format_count, format_share, literal
from ndx._pipelines.metric import (
    SHOWN,
    Counting,
    NaN,
    as_array,
    check_average,
    flat_weights,
    labels_of,
    on_host,
    scikit_learn,
    table_of_columns,
    without_bad,
)

__all__ = ["Classification", "ClassificationResult"]

Average: TypeAlias = Literal["macro", "micro", "weighted"]


class Classification(Counting):
    """Counts which class was expected, and which one was predicted.

    Parameters
    ----------
    classes : int or iterable of str, optional
        The number of classes, or their names. Default: as many as the scores of the
        first batch have columns, or two for binary scores.
    threshold : float
        For binary scores: the least one of class 1.
    nan : {"raise", "omit"}
        Whether a sample with NaN is an error, or is left out.
    one_hot : bool, optional
        Whether outputs of ints or bools are columns, one for each class, with a single
        1 in each row (True), or class numbers (False). Default: class numbers; if they
        have the shape of the expected values, and a last axis as long as there are
        classes, an error, since both are possible.
    name : str
        Its name in the report.

    Notes
    -----
    It keeps one matrix of float64, classes x classes, whatever the number of samples.
    ND4J's ``Evaluation``.

    Examples
    --------
    >>> import ndx
    >>> metric = ndx.metrics.Classification(["cat", "dog"])
    >>> metric.update(ndx.asarray([0, 1, 1]), ndx.asarray([0, 1, 0]))
    >>> result = metric.result()
    >>> result.accuracy, result.recall(average=None)
    (0.6666666666666666, NDArray([1. , 0.5]))
    >>> result.confusion
    NDArray([[1., 0.],
             [1., 1.]])
    """

    _start: Mapping[str, float] = {"confusion": 0.0}
    _are_pairs = True

    def __init__(
        self,
        classes: int | Iterable[str] | None = None,
        *,
        threshold: float = 0.5,
        nan: NaN = "raise",
        one_hot: bool | None = None,
        name: str = "classification",
    ) -> None:
        if one_hot is not None and not isinstance(one_hot, bool):
            msg = f"one_hot={one_hot!r} is not valid; valid are True, False and None"
            raise TypeError(msg)
        super().__init__(name, classes, nan)
        self._one_hot, self._threshold = one_hot, float(threshold)
        self._options = self._given, self._threshold

    def update(self, expected: Any, outputs: Any, weights: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        expected : array
            Class numbers, of shape (n,), or one column for each class (the largest one
            is the class), of shape (n, classes). There may be more axes, such as one of
            time, before the last.
        outputs : array
            Scores, of shape (n, classes): the largest one is the prediction; or binary
            scores: floats of shape (n,) or (n, 1), compared with the threshold; or
            predicted class numbers: ints or bools of shape (n,).
        weights : array of float or bool, optional
            Of shape (n,): the weight of each sample, or a mask. What a sample of weight
            0 holds is not looked at.

        Raises
        ------
        ValueError
            If shapes don't fit, a class number is not one of the classes, there is NaN
            (with ``nan="raise"``), or outputs of ints or bools may be class numbers or
            columns, and neither ``one_hot`` nor weights of their shape say which.
        """
        expected = as_array(expected, "expected values")
        outputs = as_array(outputs, "outputs")
        predicted, bad, classes = self._predictions(outputs, expected, weights)
        shape = predicted.shape
        labels = self._expected(expected, shape, classes)
        if ndx.isdtype(labels.dtype, "real floating"):
            missing = ndx.reshape(ndx.isnan(labels), (-1,))
            bad = missing if bad is None else bad | missing
        given = flat_weights(weights, shape)
        omitted = 0
        if bad is not None:
            given, omitted = without_bad(bad, given, self._nan, "NaN")
        labels = labels_of(ndx.reshape(labels, (-1,)), classes, given, "expected ones")
        flat = labels_of(ndx.reshape(predicted, (-1,)), classes, given, "outputs")
        self._allocate(classes)
        # The one way to count in place, without an array of all pairs of classes.
        np.add.at(self._counts["confusion"], labels * classes + flat, given)
        self._omitted += omitted

    def _predictions(
        self, outputs: ndx.NDArray, expected: ndx.NDArray, weights: Any
    ) -> tuple[ndx.NDArray, ndx.NDArray | None, int]:
        """Return predicted classes, which samples have NaN, and how many classes."""
        real = ndx.isdtype(outputs.dtype, "real floating")
        columns = outputs.ndim == expected.ndim + 1 or (real and outputs.ndim > 1)
        if not real and not ndx.isdtype(outputs.dtype, ("bool", "integral")):
            msg = f"outputs of dtype {outputs.dtype} are neither scores nor classes"
            raise TypeError(msg)
        bad = None
        if columns and outputs.shape[-1] != 1:
            classes = self._checked(outputs.shape[-1])
            if real:
                bad = ndx.any(ndx.isnan(outputs), axis=-1)
            predicted = ndx.argmax(outputs, axis=-1)
        elif real:
            classes = self._checked(2)
            if columns:
                outputs = outputs[..., 0]
            bad, predicted = ndx.isnan(outputs), outputs >= self._threshold
        elif self._columns:
            classes = self._columns
            if weights is not None:
                weights = as_array(weights, "weights")
            if self._one_hot:
                return _classes_of(outputs, classes), None, classes
            each = weights is not None and weights.shape == outputs.shape
            may_be_columns = (
                not each
                and expected.shape == outputs.shape
                and outputs.ndim > 1
                and outputs.shape[-1] == classes
            )
            if may_be_columns and self._one_hot is None:
                raise ValueError(
                    f"expected values and outputs of shape {outputs.shape} and dtype "
                    f"{outputs.dtype} may be {outputs.size} class numbers, or one "
                    f"column for each of the {classes} classes: say which by "
                    "Classification(one_hot=True) or one_hot=False, or give columns "
                    "of floats"
                )
            predicted = outputs[..., 0] if columns else outputs
        else:
            raise ValueError(
                "outputs that are classes don't tell how many there are: give "
                "Classification(classes=...)"
            )
        if bad is not None:
            bad = ndx.reshape(on_host(bad), (-1,))
        return on_host(predicted), bad, classes

    def _checked(self, classes: int) -> int:
        if classes < 1 or (self._columns and classes != self._columns):
            there = (
                f"{self._columns} classes" if self._columns else "at least one class"
            )
            raise ValueError(
                f"outputs have scores for {classes} classes, and the metric has {there}"
            )
        return classes

    def _expected(
        self, expected: ndx.NDArray, shape: tuple[int, ...], classes: int
    ) -> ndx.NDArray:
        """Return expected classes of the shape of the predicted ones."""
        if expected.shape == (*shape, 1):
            expected = expected[..., 0]
        elif expected.shape == (*shape, classes):
            expected = _hottest(expected)
        if expected.shape != shape:
            raise ValueError(
                f"expected values of shape {expected.shape} don't fit predictions of "
                f"shape {shape}; they are class numbers of that shape, or have "
                f"{classes} columns"
            )
        return on_host(expected)

    def result(self) -> ClassificationResult:
        """Return the confusion matrix of all batches, and what follows from it.

        Returns
        -------
        ClassificationResult
            Later updates don't change it.
        """
        shape = self._columns, self._columns
        with ndx.no_workspace():
            if not self._counts:
                confusion = ndx.zeros(shape, device="cpu")
            else:
                confusion = ndx.reshape(self._counts["confusion"], shape, copy=True)
        return ClassificationResult(confusion, self._names, self._omitted)


@dataclass(frozen=True, eq=False)
class ClassificationResult:
    """What a `Classification` has counted.

    Attributes
    ----------
    confusion : NDArray
        Of shape (classes, classes): the weight (without weights: the number) of samples
        of the class expected, in rows, that were predicted as the class of the column.
    classes : tuple of str
    omitted : int
        Samples left out because of NaN.

    Notes
    -----
    All but `confusion`, `support` and `accuracy` is computed by scikit-learn, for all
    classes, also for those that never occur.

    Raises
    ------
    ImportError
        When such a measure is asked for, and scikit-learn is not installed.
    """

    confusion: ndx.NDArray
    classes: tuple[str, ...]
    omitted: int = 0

    @property
    def support(self) -> ndx.NDArray:
        """The weight of the samples of each class, of shape (classes,)."""
        return ndx.sum(self.confusion, axis=1)

    @property
    def accuracy(self) -> float:
        """The share of samples whose prediction is right; NaN without samples."""
        total = float(ndx.sum(self.confusion))
        return float(ndx.linalg.trace(self.confusion)) / total if total else math.nan

    @property
    def balanced_accuracy(self) -> float:
        """The mean recall of the classes that occur; NaN without samples."""
        return float(self.recall(zero_division=math.nan))

    @property
    def matthews_correlation(self) -> float:
        """Matthews' correlation coefficient of classes; 0 if one side is constant."""
        expected, predicted, counts = self._samples()
        if min(len(set(expected.tolist())), len(set(predicted.tolist()))) < 2:
            # Constant, which rounded sums would not show.
            return 0.0
        correlation = scikit_learn("matthews_correlation").matthews_corrcoef
        return float(correlation(expected, predicted, sample_weight=counts))

    def _samples(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a sample for each pair of classes that occurs, and its weight."""
        matrix = np.asarray(self.confusion)
        expected, predicted = np.nonzero(matrix)
        return expected, predicted, matrix[expected, predicted]

    def _scores(self, beta: float, average: str | None, zero_division: float) -> Any:
        """Return precision, recall, F score and support, as scikit-learn does."""
        check_average(average, ("macro", "micro", "weighted"))
        if not beta >= 0:
            msg = f"beta={beta} is not valid for an F score; it is not negative"
            raise ValueError(msg)
        expected, predicted, counts = self._samples()
        if not counts.size:
            # scikit-learn refuses to take no samples.
            support = np.zeros(len(self.classes))
            none: Any = zero_division
            if average is None:
                none = np.full_like(support, zero_division)
            return none, none, none, support
        return scikit_learn(
            "precision, recall and F scores"
        ).precision_recall_fscore_support(
            expected,
            predicted,
            beta=beta,
            labels=range(len(self.classes)),
            average=average,
            sample_weight=counts,
            zero_division=zero_division,
        )

    def _score(
        self, which: int, beta: float, average: str | None, zero_division: float
    ) -> float | ndx.NDArray:
        found = self._scores(beta, average, zero_division)[which]
        if average is None:
            return ndx.asarray(found, dtype=ndx.float64, device="cpu")
        return float(found)

    def precision(
        self, average: Average | None = "macro", *, zero_division: float = 0.0
    ) -> float | ndx.NDArray:
        """Return the share of the predictions of a class that are right.

        Parameters
        ----------
        average : {"macro", "micro", "weighted"}, optional
            The mean of the classes; the value of all samples together; the mean of the
            classes by their support. None: the value of each class.
        zero_division : float
            The value of a class that was never predicted. NaN leaves it out of means.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``.

        Raises
        ------
        ValueError
            If there is no such average.
        """
        return self._score(0, 1.0, average, zero_division)

    def recall(
        self, average: Average | None = "macro", *, zero_division: float = 0.0
    ) -> float | ndx.NDArray:
        """Return the share of the samples of a class that are predicted as it.

        Parameters
        ----------
        average : {"macro", "micro", "weighted"}, optional
            As for `precision`.
        zero_division : float
            The value of a class that has no samples. NaN leaves it out of means.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``.

        Raises
        ------
        ValueError
            If there is no such average.
        """
        return self._score(1, 1.0, average, zero_division)

    def f1(
        self, average: Average | None = "macro", *, zero_division: float = 0.0
    ) -> float | ndx.NDArray:
        """Return the harmonic mean of precision and recall.

        Parameters
        ----------
        average : {"macro", "micro", "weighted"}, optional
            As for `precision`.
        zero_division : float
            The value of a class that was neither expected nor predicted. NaN leaves it
            out of means.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``.

        Raises
        ------
        ValueError
            If there is no such average.
        """
        return self.fbeta(1.0, average, zero_division=zero_division)

    def fbeta(
        self,
        beta: float,
        average: Average | None = "macro",
        *,
        zero_division: float = 0.0,
    ) -> float | ndx.NDArray:
        """Return the harmonic mean of precision and recall, the latter `beta` times.

        Parameters
        ----------
        beta : float
            0 for precision, 1 for F1, infinity for recall.
        average : {"macro", "micro", "weighted"}, optional
            As for `precision`.
        zero_division : float
            The value of a class of which there is nothing to divide by. NaN leaves it
            out of means.

        Returns
        -------
        float or NDArray
            An array of shape (classes,) for ``average=None``.

        Raises
        ------
        ValueError
            If there is no such average, or `beta` is negative.
        """
        return self._score(2, beta, average, zero_division)

    def tables(self) -> list[Table]:
        """Return the tables of a report."""
        *shares, support = self._scores(1.0, None, 0.0)
        rows = [
            (name, *map(format_share, each), format_count(count))
            for name, *each, count in zip(self.classes, *shares, support, strict=True)
        ]
        total = format_count(ndx.sum(self.confusion))
        ends = [("accuracy", "", "", format_share(self.accuracy), total)]
        for average in ("weighted", "macro"):
            means = self._scores(1.0, average, 0.0)[:3]
            ends.insert(0, (f"{average} mean", *map(format_share, means), total))
        omitted = ("omitted (NaN)", "", "", "", str(self.omitted))
        header = ("", "precision", "recall", "F1", "support")
        tables = table_of_columns("classes", header, rows, ends, omitted)
        return [*tables, self._confusions()]

    def _confusions(self) -> Table:
        """Return the confusion matrix or, of many classes, the most frequent errors."""
        title, size = "expected (rows), predicted (columns)", len(self.classes)
        if size <= SHOWN:
            matrix = self.confusion.tolist()
            whole = [sum(row) or 1.0 for row in matrix]
            return Table(
                title,
                ("", *self.classes),
                [
                    (name, *map(format_count, row))
                    for name, row in zip(self.classes, matrix, strict=True)
                ],
                [
                    [x / total for x in row]
                    for row, total in zip(matrix, whole, strict=True)
                ],
            )
        wrong = ndx.reshape(self.confusion * (1 - ndx.eye(size, device="cpu")), (-1,))
        first = ndx.argsort(wrong, descending=True)[:SHOWN].tolist()
        rows = [
            (
                *(self.classes[i] for i in divmod(place, size)),
                format_count(wrong[place]),
            )
            for place in first
            if wrong[place] > 0
        ]
        return Table("most frequent errors", ("expected", "predicted", "count"), rows)

    def plot(self, axes: Any) -> None:
        """Draw the confusion matrix by scikit-learn; up to 20 classes with counts.

        Parameters
        ----------
        axes : matplotlib.axes.Axes
        """
        display = scikit_learn("a picture of a confusion matrix").ConfusionMatrixDisplay
        names = [literal(name) for name in self.classes]
        display(np.asarray(self.confusion), display_labels=names).plot(
            ax=axes,
            cmap="Blues",
            colorbar=False,
            include_values=len(names) <= SHOWN,
            values_format=".4g",
            xticks_rotation="vertical" if max(map(len, names)) > 2 else "horizontal",
        )
        axes.set(xlabel="predicted", ylabel="expected")
        axes.set_title(f"accuracy {self.accuracy:.4f}")


def _classes_of(outputs: ndx.NDArray, classes: int) -> ndx.NDArray:
    """Return the classes of outputs that have a single 1 in each row."""
    if outputs.ndim < 2 or outputs.shape[-1] != classes:
        raise ValueError(
            f"outputs of shape {outputs.shape} are not one-hot: their last axis has to "
            f"be as long as there are classes, {classes}"
        )
    ones = ndx.sum(outputs == 1, axis=-1) == 1
    if not ndx.all(ones & (ndx.sum(outputs != 0, axis=-1) == 1)):
        msg = "outputs are not one-hot: each row has a single 1, and zeros"
        raise ValueError(msg)
    return ndx.argmax(outputs, axis=-1)


def _hottest(expected: ndx.NDArray) -> ndx.NDArray:
    """Return the classes of one-hot values; NaN where there is one among them."""
    found = ndx.argmax(expected, axis=-1)
    if not ndx.isdtype(expected.dtype, "real floating"):
        return found
    bad = ndx.any(ndx.isnan(expected), axis=-1)
    if not ndx.any(bad):
        return found
    return ndx.where(bad, ndx.nan, ndx.astype(found, ndx.float64))

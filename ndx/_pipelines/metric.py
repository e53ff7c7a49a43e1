"""What a metric is, what of a batch it counts, and the mean of a function."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

import numpy as np

import ndx
from ndx._lib.tables import Table
from ndx._pipelines.arguments import check_choice

__all__ = [
    "Counting",
    "Mean",
    "Metric",
    "NaN",
    "SHOWN",
    "as_array",
    "check_average",
    "flat_weights",
    "kept",
    "labels_of",
    "on_host",
    "scikit_learn",
    "table_of_columns",
    "without_bad",
]

Result = TypeVar("Result", covariant=True)


@runtime_checkable
class Metric(Protocol[Result]):
    """What `ndx.evaluate` calls: any object with these methods is a metric.

    A metric of one's own need not derive from this class. Its `update` is called in the
    workspace of the evaluation: what it keeps are numbers, arrays made in
    ``ndx.no_workspace()`` or before, or detached copies. It may have an attribute
    `name`. Only `ndx.metrics` themselves and those who merge need `merge`.

    Its result is shown by its ``str``; if it has a method ``plot(axes)``, the picture
    of a report includes it.

    Notes
    -----
    ND4J's ``IEvaluation``: ``eval``, ``stats``, ``reset``, ``merge``.

    Examples
    --------
    >>> import ndx
    >>> class Largest:
    ...     def reset(self):
    ...         self.value = 0.0
    ...     def update(self, expected, outputs):
    ...         self.value = max(self.value, float(ndx.max(abs(expected - outputs))))
    ...     def result(self):
    ...         return self.value
    >>> x = ndx.asarray([1.0, 4.0])
    >>> ndx.evaluate(lambda x: x**2, [(x, 2 * x)], Largest())["largest"]
    8.0
    """

    def update(self, expected: Any, outputs: Any, weights: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        expected, outputs : array
            The batch's expected values, and what the function returned.
        weights : array, optional
            Given only for batches that have weights.
        """

    def result(self) -> Result:
        """Return the result of all batches since `reset`."""

    def reset(self) -> None:
        """Forget all batches."""


class Counting:
    """What a metric of ndx keeps of batches: arrays of a fixed size, on the CPU."""

    # The arrays, and what they hold before any batch.
    _start: Mapping[str, float] = {}
    # Whether each has an element for each pair of columns, and not for each column.
    _are_pairs = False

    def __init__(
        self, name: str, columns: int | Iterable[str] | None, nan: NaN
    ) -> None:
        self.name = name
        self._given = None if columns is None else _names_of(columns)
        check_choice("nan", nan, ("raise", "omit"), "is not valid for a metric")
        self._nan: NaN = nan
        self._omitted = 0
        self._columns = 0
        self._counts: dict[str, ndx.NDArray] = {}
        # Metrics that agree in these can be merged.
        self._options: tuple[Any, ...] = (self._given,)
        if self._given is not None:
            self._allocate(len(self._given))

    @property
    def _names(self) -> tuple[str, ...]:
        return _names_of(self._columns) if self._given is None else self._given

    def _allocate(self, columns: int) -> None:
        if self._counts:
            return
        self._columns = columns
        length = columns ** (2 if self._are_pairs else 1)
        with ndx.no_workspace():
            self._counts = {
                name: ndx.full(length, value, device="cpu")
                for name, value in self._start.items()
            }

    def reset(self) -> None:
        """Forget all batches; the memory is kept for the next ones."""
        self._omitted = 0
        for name, x in self._counts.items():
            x[...] = self._start[name]

    def merge(self, other: Self) -> None:
        """Count what another metric of the same kind and options has counted, too.

        Parameters
        ----------
        other : metric
            Of the same class.

        Raises
        ------
        TypeError, ValueError
            If it is another metric, was made with other options, or has counted
            another number of classes or columns.
        """
        if not (isinstance(other, type(self)) or isinstance(self, type(other))) or (
            other._options != self._options
            or len({self._columns, other._columns} - {0}) > 1
        ):
            raise self._no_merge(other)
        if other._columns:
            self._allocate(other._columns)
            self._add(other)
        self._omitted += other._omitted

    def _add(self, other: Self) -> None:
        """Add the counts of another one, which has the same columns."""
        for name, x in self._counts.items():
            x += other._counts[name]

    def _no_merge(self, other: object) -> TypeError | ValueError:
        """Return the error for another metric that can't be merged."""
        mine, others = type(self).__name__, type(other).__name__
        if mine != others:
            return TypeError(
                f"a {mine} merges with another {mine}, not with a {others}"
            )
        return ValueError(
            f"two metrics {mine} merge if they were made with the same options, and "
            "saw arrays of the same number of classes or columns"
        )


class Mean(Counting):
    """The mean of a function of expected values and outputs, such as a loss.

    Parameters
    ----------
    function : callable
        Called as ``function(expected, outputs)``. It returns a value for each sample,
        an array of shape (n,), or one number, the mean of the batch.
    name : str, optional
        Its name in the report. Default: that of the function.
    nan : {"raise", "omit"}
        Whether NaN of the function is an error, or is left out.

    Notes
    -----
    Weights apply to values of samples. A batch's mean counts as many times as it has
    samples, or has their weight.

    Examples
    --------
    >>> import ndx
    >>> def loss(expected, outputs):
    ...     return (expected - outputs) ** 2
    >>> x = ndx.asarray([1.0, 3.0])
    >>> ndx.evaluate(lambda x: 2 * x, [(x, x)], ndx.metrics.Mean(loss))["loss"]
    5.0
    """

    _start: Mapping[str, float] = {"sum": 0.0, "weight": 0.0}

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        name: str | None = None,
        nan: NaN = "raise",
    ) -> None:
        if not callable(function):
            msg = f"a Mean takes a function (expected, outputs), not {function!r}"
            raise TypeError(msg)
        name = name or getattr(function, "__name__", "mean").strip("<>")
        super().__init__(name, 1, nan)
        self._function, self._options = function, (function,)

    def update(self, expected: Any, outputs: Any, weights: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        expected, outputs : array
            Of any shapes that the function takes; the first axis of `expected` counts
            its samples.
        weights : array of float or bool, optional
            Of shape (n,).
        """
        values = as_array(self._function(expected, outputs), "values of the function")
        count = 1 if expected.ndim == 0 else expected.shape[0]
        if values.ndim == 0:
            total = ndx.sum(flat_weights(weights, (count,)))
            values, given = ndx.reshape(values, (1,)), ndx.reshape(total, (1,))
        else:
            given = flat_weights(weights, values.shape)
            values = ndx.reshape(values, (-1,))
        values = on_host(values)
        given, _ = without_bad(ndx.isnan(values), given, self._nan, "NaN")
        self._counts["sum"] += ndx.sum(kept(values, given) * given)
        self._counts["weight"] += ndx.sum(given)

    def result(self) -> float:
        """Return the mean; NaN if nothing was counted."""
        total, weight = (float(x[0]) for x in self._counts.values())
        return total / weight if weight else math.nan


def scikit_learn(what: str) -> Any:
    """Return scikit-learn's metrics, or raise ImportError that says what needs them."""
    try:
        from sklearn import metrics
    except ImportError as error:
        raise ImportError(
            f"{what} needs scikit-learn, which computes it from what ndx has counted: "
            "pip install 'ndxarray[metrics]'"
        ) from error
    return metrics


# ---- What batches hold, in the one form that metrics count ---------------------------

NaN: TypeAlias = Literal["raise", "omit"]


def as_array(x: Any, what: str) -> ndx.NDArray:
    """Return expected values or outputs as an array, without a copy if possible."""
    if isinstance(x, ndx.NDArray):
        return x
    if np.ma.is_masked(x):
        raise TypeError(
            f"the {what} of a batch have masked values, which would count: give "
            "weights of 0 for these samples, and x.data or x.filled(0)"
        )
    # An array of NumPy stays where it is, whatever the current device.
    device = "cpu" if isinstance(x, np.ndarray) else None
    try:
        return ndx.asarray(x, device=device)
    except (TypeError, ValueError) as error:
        msg = f"the {what} of a batch must be an array of numbers"
        if device is None:
            msg += (
                f", not {type(x).__name__}; a function around the metric's `update` "
                "can choose a part of it"
            )
        else:
            msg += f": {error}"
            if x.dtype.kind in "OSUT":
                msg += ". Classes are given by their numbers"
        raise TypeError(msg) from error


def on_host(x: ndx.NDArray) -> ndx.NDArray:
    """Return an array of a GPU as one of the CPU; others as they are."""
    return x if x.device == "cpu" else x.to_device("cpu")


def flat_weights(weights: Any, *shapes: tuple[int, ...]) -> ndx.NDArray:
    """Return weights or a mask as float64 in one dimension, checked; None: all are 1.

    The first of the valid shapes is that of the weights if they are None.
    """
    if weights is None:
        return ndx.ones(math.prod(shapes[0]), device="cpu")
    weights = on_host(as_array(weights, "weights"))
    if weights.shape not in shapes:
        valid = " or ".join(map(str, dict.fromkeys(shapes)))
        msg = f"the weights of a batch have shape {weights.shape}, not {valid}"
        raise ValueError(msg)
    if not ndx.isdtype(weights.dtype, ("bool", "real floating", "integral")):
        msg = f"weights must be bools or real numbers, not {weights.dtype}"
        raise TypeError(msg)
    flat = ndx.astype(ndx.reshape(weights, (-1,)), ndx.float64, copy=False)
    # Not true for NaN, either.
    if not ndx.all((flat >= 0) & (flat < ndx.inf)):
        msg = "weights must be finite and not negative"
        raise ValueError(msg)
    if ndx.sum(flat) == ndx.inf:
        msg = "the sum of a batch's weights is beyond the largest float: scale them"
        raise ValueError(msg)
    return flat


def without_bad(
    bad: ndx.NDArray, weights: ndx.NDArray, nan: NaN, what: str
) -> tuple[ndx.NDArray, int]:
    """Apply the policy for NaN; return the weights then, and how many are left out.

    The samples that are `bad` can't be counted, since they are `what`. Those of weight
    0 are not there: they may hold anything.
    """
    bad = bad & (weights > 0)
    count = int(ndx.count_nonzero(bad))
    if not count:
        return weights, 0
    if nan == "raise":
        raise ValueError(
            f"{count} of {bad.size} values of a batch are {what}; leave them out by a "
            "mask (weights of 0) or by nan='omit'"
        )
    return ndx.where(bad, 0.0, weights), count


def kept(x: ndx.NDArray, weights: ndx.NDArray) -> ndx.NDArray:
    """Return values with 0 where the weight is 0, whatever was there."""
    return ndx.where(weights > 0, x, ndx.zeros((), dtype=x.dtype, device="cpu"))


def labels_of(
    x: ndx.NDArray, classes: int, weights: ndx.NDArray, what: str
) -> ndx.NDArray:
    """Return flat class numbers as int64; raise ValueError for those of no class."""
    there = kept(x, weights)
    labels = ndx.astype(there, ndx.int64, copy=False)
    # Floats may lie between classes.
    wrong = (labels != there) | (labels < 0) | (labels >= classes)
    if ndx.any(wrong):
        example = x[wrong][0].item()
        raise ValueError(
            f"{int(ndx.count_nonzero(wrong))} of {x.size} {what} are no classes, "
            f"such as {example}; {classes} classes are numbered from 0 to {classes - 1}"
        )
    return labels


def _names_of(classes: object) -> tuple[str, ...]:
    """Return the names of classes or columns, from a number of them or from names."""
    if not isinstance(classes, str | bool):
        if isinstance(classes, Iterable):
            names = tuple(map(str, classes))
            if len(set(names)) != len(names):
                msg = f"classes={list(names)} has a name twice"
                raise ValueError(msg)
            return names
        try:
            count = operator.index(classes)  # type: ignore[arg-type]
        except TypeError:
            pass
        else:
            if count < 0:
                msg = f"classes={count} is not valid; it is the number of classes"
                raise ValueError(msg)
            return tuple(map(str, range(count)))
    msg = f"classes={classes!r} is neither a number nor a list of names"
    raise TypeError(msg)


# ---- Results -------------------------------------------------------------------------


# Beyond so many columns, tables and pictures show the first only.
SHOWN = 20


def check_average(average: object, valid: Sequence[str], each: str = "class") -> None:
    """Raise if `average` is neither one of some means nor None."""
    if average is not None:
        more = f", and None for the value of each {each}"
        check_choice("average", average, valid, more=more)


def table_of_columns(
    title: str,
    header: Sequence[str],
    rows: list[tuple[str, ...]],
    means: list[tuple[str, ...]],
    omitted: tuple[str, ...] = (),
) -> list[Table]:
    """Return a table of columns: the first ones, the means, and what is left out."""
    more = len(rows) - SHOWN
    blank = [""] * (len(header) - 1)
    some = [(f"... {more} more", *blank)] if more > 0 else []
    # The number is in one of the last columns.
    last = [omitted] if any(cell not in ("", "0") for cell in omitted[1:]) else []
    return [Table(title, header, [*rows[:SHOWN], *some, *means, *last])]

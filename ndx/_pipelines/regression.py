"""Regression: errors and correlation, column by column."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import ndx
from ndx._lib.tables import Table, format_count, format_number
from ndx._pipelines.metric import (
    Counting,
    NaN,
    as_array,
    check_average,
    flat_weights,
    kept,
    on_host,
    table_of_columns,
    without_bad,
)

__all__ = ["Regression", "RegressionResult"]

# What is kept of each column, in arrays of shape (columns,), and the value without any
# samples: sums, means and extremes.
_START = {
    "count": 0.0,
    "weight": 0.0,
    "mean_expected": 0.0,
    "mean_output": 0.0,
    "spread_expected": 0.0,  # the sum of squared distances from the mean
    "spread_output": 0.0,
    "product": 0.0,  # the sum of products of both distances
    "absolute": 0.0,
    "squared": 0.0,
    "error": 0.0,
    "largest": 0.0,
    "low_expected": math.inf,
    "high_expected": -math.inf,
    "low_output": math.inf,
    "high_output": -math.inf,
}
_ADDED = ("count", "weight", "absolute", "squared", "error")
_LOWEST = ("low_expected", "low_output")
_HIGHEST = ("high_expected", "high_output", "largest")

Sums: TypeAlias = dict[str, ndx.NDArray]


class Regression(Counting):
    """Counts the errors of numbers, for each column.

    Parameters
    ----------
    columns : int or iterable of str, optional
        The number of columns, or their names. Default: those of the first batch.
    nan : {"raise", "omit"}
        Whether a NaN or an infinity is an error, or is left out (that value alone).
    name : str
        Its name in the report.

    Notes
    -----
    It keeps 15 numbers for each column, whatever the number of samples. Means and
    spreads of batches are put together without cancellation (Chan, Golub and LeVeque,
    1979). ND4J's ``RegressionEvaluation``.

    Examples
    --------
    >>> import ndx
    >>> metric = ndx.metrics.Regression()
    >>> metric.update(ndx.asarray([3.0, 5.0, 2.5]), ndx.asarray([2.5, 5.0, 4.0]))
    >>> result = metric.result()
    >>> round(result.mse(), 4), round(result.mae(), 4), round(result.r2(), 4)
    (0.8333, 0.6667, 0.2857)
    """

    _start: Mapping[str, float] = _START

    def __init__(
        self,
        columns: int | Iterable[str] | None = None,
        *,
        nan: NaN = "raise",
        name: str = "regression",
    ) -> None:
        super().__init__(name, columns, nan)

    def update(self, expected: Any, outputs: Any, weights: Any = None) -> None:
        """Count a batch.

        Parameters
        ----------
        expected, outputs : array
            Real numbers of the same shape, (n,) or (n, columns); a column may have an
            axis of its own on one side. There may be more axes before the last.
        weights : array of float or bool, optional
            Of shape (n,), or of the shape of `expected`: weights, or a mask. What a
            value of weight 0 is, is not looked at.

        Raises
        ------
        ValueError
            If shapes don't fit, or there is a NaN or an infinity (with
            ``nan="raise"``).
        """
        expected, outputs = (
            _real(expected, "expected values"),
            _real(outputs, "outputs"),
        )
        shape = _common_shape(expected.shape, outputs.shape)
        if self._counts and self._columns != shape[-1]:
            msg = f"a batch has {shape[-1]} columns, and the metric has {self._columns}"
            raise ValueError(msg)
        if 0 in shape:
            self._allocate(shape[-1])
            return
        expected, outputs = (
            ndx.reshape(x, (-1, shape[-1])) for x in (expected, outputs)
        )
        given = flat_weights(weights, shape[:-1], shape)
        # A weight for each sample, or for each value.
        given = ndx.reshape(given, (expected.shape[0], given.size // expected.shape[0]))
        given = ndx.broadcast_to(given, expected.shape)
        # The difference is finite only if both are, but for an overflow.
        bad = ~ndx.isfinite(outputs - expected)
        given, omitted = without_bad(bad, given, self._nan, "NaN or infinite")
        # Only now: a batch that was refused changes nothing.
        self._allocate(shape[-1])
        self._omitted += omitted
        expected, outputs = kept(expected, given), kept(outputs, given)
        _combine(self._counts, _sums_of(expected, outputs, given))

    def _add(self, other: Regression) -> None:
        _combine(self._counts, other._counts)

    def result(self) -> RegressionResult:
        """Return the errors of all batches.

        Returns
        -------
        RegressionResult
            Later updates don't change it.
        """
        with ndx.no_workspace():
            sums = {
                name: ndx.asarray(x, copy=True, device="cpu")
                for name, x in self._counts.items()
            }
            if not sums:
                sums = {name: ndx.empty(0, device="cpu") for name in _START}
        return RegressionResult(self._names, sums, self._omitted)


def _common_shape(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of both, with an axis of columns."""
    # (n,) and (n, 1) mean the same, and would broadcast to (n, n).
    columns = [s if len(s) > 1 else (*s, 1) for s in (first, second)]
    if columns[0] == columns[1] and columns[0]:
        return columns[0]
    if (*first, 1) == second or (*second, 1) == first:
        return max(first, second, key=len)
    msg = f"outputs of shape {second} don't fit expected values of shape {first}"
    raise ValueError(msg)


def _real(x: Any, what: str) -> ndx.NDArray:
    x = on_host(as_array(x, what))
    if not ndx.isdtype(x.dtype, ("bool", "integral", "real floating")):
        msg = f"{what} of dtype {x.dtype} are no real numbers"
        raise TypeError(msg)
    return ndx.astype(x, ndx.float64, copy=False)


def _sums_of(expected: ndx.NDArray, outputs: ndx.NDArray, weights: ndx.NDArray) -> Sums:
    """Return the sums of a batch; all arrays have its shape (n, columns)."""
    error = outputs - expected
    some, sizes = weights > 0, ndx.abs(error)
    total = _summed(weights)
    whole = ndx.where(total > 0, total, 1.0)
    means = [_summed(weights * x) / whole for x in (expected, outputs)]
    left, right = expected - means[0], outputs - means[1]
    weighted = weights * right
    found = {
        "count": ndx.astype(_summed(some), ndx.float64),
        "weight": total,
        "mean_expected": means[0],
        "mean_output": means[1],
        "spread_expected": _summed(weights * left * left),
        "spread_output": _summed(weighted * right),
        "product": _summed(weighted * left),
        "absolute": _summed(weights * sizes),
        "squared": _summed(weights * error * error),
        "error": _summed(weights * error),
        "largest": ndx.max(sizes, axis=0),
    }
    for name, x in (("expected", expected), ("output", outputs)):
        found[f"low_{name}"] = ndx.min(ndx.where(some, x, math.inf), axis=0)
        found[f"high_{name}"] = ndx.max(ndx.where(some, x, -math.inf), axis=0)
    return found


def _summed(x: ndx.NDArray) -> ndx.NDArray:
    return ndx.sum(x, axis=0)


def _combine(sums: Sums, others: Sums) -> None:
    """Add other sums to the first ones, in place."""
    total = sums["weight"] + others["weight"]
    share = others["weight"] / ndx.where(total > 0, total, 1.0)
    apart = {
        name: others[f"mean_{name}"] - sums[f"mean_{name}"]
        for name in ("expected", "output")
    }
    between = sums["weight"] * share
    pairs = (
        ("spread_expected", "expected", "expected"),
        ("spread_output", "output", "output"),
        ("product", "expected", "output"),
    )
    for name, first, second in pairs:
        sums[name] += others[name] + apart[first] * apart[second] * between
    for name, distance in apart.items():
        sums[f"mean_{name}"] += distance * share
    for name in _ADDED:
        sums[name] += others[name]
    for name in _LOWEST:
        sums[name][...] = ndx.minimum(sums[name], others[name])
    for name in _HIGHEST:
        sums[name][...] = ndx.maximum(sums[name], others[name])


@dataclass(frozen=True, eq=False)
class RegressionResult:
    """What a `Regression` has counted.

    Each measure is the mean of the columns, or with ``average=None`` an array of shape
    (columns,); NaN where nothing was counted.

    Attributes
    ----------
    columns : tuple of str
    sums : dict of NDArray
        What the measures are computed from, of shape (columns,).
    omitted : int
        Values left out because of NaN or infinity.

    Notes
    -----
    Definitions are those of scikit-learn's ``mean_squared_error`` and so on, with
    ``multioutput="uniform_average"`` or ``"raw_values"``.
    """

    columns: tuple[str, ...]
    sums: Sums
    omitted: int = 0

    def mse(self, average: Literal["mean"] | None = "mean") -> float | ndx.NDArray:
        """Return the mean squared error, in squared units of the column."""
        return self._averaged(self._per_weight("squared"), average)

    def rmse(self, average: Literal["mean"] | None = "mean") -> float | ndx.NDArray:
        """Return the root of the mean squared error, in units of the column."""
        return self._averaged(ndx.sqrt(self._per_weight("squared")), average)

    def mae(self, average: Literal["mean"] | None = "mean") -> float | ndx.NDArray:
        """Return the mean absolute error, in units of the column."""
        return self._averaged(self._per_weight("absolute"), average)

    def bias(self, average: Literal["mean"] | None = "mean") -> float | ndx.NDArray:
        """Return the mean of outputs minus expected values, in units of the column."""
        return self._averaged(self._per_weight("error"), average)

    def max_error(
        self, average: Literal["mean"] | None = "mean"
    ) -> float | ndx.NDArray:
        """Return the largest absolute error, in units of the column."""
        some = self.sums["count"] > 0
        return self._averaged(ndx.where(some, self.sums["largest"], math.nan), average)

    def r2(self, average: Literal["mean"] | None = "mean") -> float | ndx.NDArray:
        """Return the coefficient of determination.

        1 less the squared errors over those of the mean. If expected values are
        constant: 1 if all outputs are right, else 0. NaN for fewer than two samples.
        """
        left = self.sums["squared"]
        constant = self._constant("expected") | (self.sums["spread_expected"] == 0)
        whole = ndx.where(constant, 1.0, self.sums["spread_expected"])
        flat = ndx.astype(left == 0, ndx.float64)
        found = ndx.where(constant, flat, 1 - left / whole)
        return self._averaged(
            ndx.where(self.sums["count"] > 1, found, math.nan), average
        )

    def correlation(
        self, average: Literal["mean"] | None = "mean"
    ) -> float | ndx.NDArray:
        """Return Pearson's correlation; NaN where one side is constant."""
        constant = self._constant("expected") | self._constant("output")
        spread = ndx.sqrt(self.sums["spread_expected"]) * ndx.sqrt(
            self.sums["spread_output"]
        )
        constant = constant | (spread == 0)
        found = ndx.clip(
            self.sums["product"] / ndx.where(constant, 1.0, spread), -1.0, 1.0
        )
        return self._averaged(ndx.where(constant, math.nan, found), average)

    def _constant(self, side: str) -> ndx.NDArray:
        # Exact, unlike the spread, which rounding may leave above 0.
        return self.sums[f"low_{side}"] >= self.sums[f"high_{side}"]

    def _per_weight(self, name: str) -> ndx.NDArray:
        weight = self.sums["weight"]
        some = weight > 0
        return ndx.where(some, self.sums[name] / ndx.where(some, weight, 1.0), math.nan)

    def _averaged(self, each: ndx.NDArray, average: str | None) -> float | ndx.NDArray:
        check_average(average, ("mean",), "column")
        if average is None:
            return each
        return float(ndx.mean(each)) if each.size else math.nan

    def tables(self) -> list[Table]:
        """Return the tables of a report."""
        measures = {
            "MSE": self.mse, "RMSE": self.rmse, "MAE": self.mae, "bias": self.bias,
            "largest": self.max_error, "R2": self.r2, "correlation": self.correlation,
        }  # fmt: skip
        columns = [
            ndx.asarray(each(None), device="cpu").tolist() for each in measures.values()
        ]
        weights = self.sums["weight"].tolist()
        rows = [
            (name, *map(format_number, values), format_count(weight))
            for name, *values, weight in zip(
                self.columns, *columns, weights, strict=True
            )
        ]
        means = []
        if len(rows) > 1:
            each = [format_number(float(measure())) for measure in measures.values()]
            means.append(("mean", *each, ""))
        blank = [""] * len(measures)
        omitted = ("omitted (NaN, infinite)", *blank, str(self.omitted))
        header = ("", *measures, "support")
        return table_of_columns("errors by column", header, rows, means, omitted)

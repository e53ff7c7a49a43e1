"""What a metric is, and the mean of a function of one's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Protocol, TypeVar, runtime_checkable

import ndx
from ndx._pipelines.samples import (
    NaN,
    as_array,
    checked_nan,
    flat_weights,
    kept,
    on_host,
    without_bad,
)

__all__ = ["Mean", "Metric", "no_merge"]

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


def no_merge(metric: object, other: object) -> TypeError | ValueError:
    """Return the error for two metrics that can't be merged."""
    mine, others = type(metric).__name__, type(other).__name__
    if mine != others:
        return TypeError(f"a {mine} merges with another {mine}, not with a {others}")
    return ValueError(
        f"two metrics {mine} merge if they were made with the same options, and saw "
        "arrays of the same number of classes or columns"
    )


class Mean:
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

    def __init__(
        self,
        function: Callable[[Any, Any], Any],
        name: str | None = None,
        nan: NaN = "raise",
    ) -> None:
        _check_callable(function)
        self.name = name or getattr(function, "__name__", "mean").strip("<>")
        self._function, self._nan = function, checked_nan(nan)
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._sum = self._weight = 0.0

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
        self._sum += float(ndx.sum(kept(values, given) * given))
        self._weight += float(ndx.sum(given))

    def result(self) -> float:
        """Return the mean; NaN if nothing was counted."""
        return self._sum / self._weight if self._weight else math.nan

    def merge(self, other: Mean) -> None:
        """Count what another metric of the same function has counted, too.

        Parameters
        ----------
        other : Mean

        Raises
        ------
        TypeError, ValueError
            If it is another metric, or has another function.
        """
        if type(other) is not Mean or other._function != self._function:
            raise no_merge(self, other)
        self._sum += other._sum
        self._weight += other._weight


def _check_callable(function: object) -> None:
    if not callable(function):
        msg = f"a Mean takes a function (expected, outputs), not {function!r}"
        raise TypeError(msg)

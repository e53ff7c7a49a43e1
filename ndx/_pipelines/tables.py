"""What the results of metrics share: names of classes, and means."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable

import ndx

__all__ = ["class_names", "weighted_mean"]


def class_names(classes: object) -> tuple[str, ...]:
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


def weighted_mean(values: ndx.NDArray, weights: ndx.NDArray | None = None) -> float:
    """Return the mean of values that are not NaN; NaN if there are none."""
    some = ~ndx.isnan(values)
    shares = ndx.astype(some, ndx.float64)
    if weights is not None and ndx.any(some & (weights > 0)):
        shares = shares * weights
    total = float(ndx.sum(shares))
    if not total:
        return math.nan
    return float(ndx.sum(ndx.where(some, values, 0.0) * shares)) / total

"""What batches hold, in the one form that metrics count: checked, flat, weighted."""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

import ndx

__all__ = [
    "NaN",
    "as_array",
    "checked_nan",
    "flat_weights",
    "kept",
    "labels_of",
    "on_host",
    "without_bad",
]

NaN: TypeAlias = Literal["raise", "omit"]


def checked_nan(nan: object) -> NaN:
    """Return a policy for NaN, if it is one."""
    if nan == "raise":
        return "raise"
    if nan == "omit":
        return "omit"
    msg = f"nan={nan!r} is not valid for a metric; valid are 'raise', 'omit'"
    raise ValueError(msg)


def as_array(x: Any, what: str) -> ndx.NDArray:
    """Return expected values or outputs as an array, without a copy if possible."""
    if isinstance(x, ndx.NDArray):
        return x
    if np.ma.is_masked(x):
        msg = (
            f"the {what} of a batch have masked values, which would count: give "
            "weights of 0 for these samples, and x.data or x.filled(0)"
        )
        raise TypeError(msg)
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
    """Return weights or a mask as float64 in one dimension, checked.

    Parameters
    ----------
    weights : array, optional
        None: all are 1.
    *shapes : tuple of int
        The valid ones; the first one is that of the weights if they are None.
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

    Parameters
    ----------
    bad : NDArray of bool
        The samples that can't be counted, of the shape of the weights.
    weights : NDArray of float64
        Samples of weight 0 are not there: they may hold anything.
    nan : {"raise", "omit"}
    what : str
        What is bad about them.
    """
    bad = bad & (weights > 0)
    count = int(ndx.count_nonzero(bad))
    if not count:
        return weights, 0
    if nan == "raise":
        msg = (
            f"{count} of {bad.size} values of a batch are {what}; leave them out by a "
            "mask (weights of 0) or by nan='omit'"
        )
        raise ValueError(msg)
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
        msg = (
            f"{int(ndx.count_nonzero(wrong))} of {x.size} {what} are no classes, "
            f"such as {example}; {classes} classes are numbered from 0 to {classes - 1}"
        )
        raise ValueError(msg)
    return labels

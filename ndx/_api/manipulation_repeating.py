"""Manipulation functions of the standard that move elements, and lay out copies."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ndx._api.creation import empty_like
from ndx._api.manipulation_broadcasting import broadcast_to
from ndx._api.manipulation_views import reshape
from ndx._compute.numpy_calls import argument, axes_of, axis_index
from ndx._compute.rearranging import rolled, tiled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ndx._typing import Array, Axes, NDArray

__all__ = ["roll", "tile"]

_MOST_AXES = 64


def roll(
    x: Array, /, shift: int | Sequence[int], *, axis: Axes | None = None
) -> NDArray:
    """Return an array with its elements moved cyclically along axes.

    Parameters
    ----------
    x : NDArray
    shift : int or tuple of int
        Number of places, towards larger indices: one for all axes, or one for each.
    axis : int or tuple of int, optional
        Axes, each in ``[-x.ndim, x.ndim)``. Default: roll the flattened array.

    Returns
    -------
    NDArray
        A new array of the shape and the dtype of `x`.

    Raises
    ------
    ValueError
        If an axis is out of range, or the numbers of shifts and axes differ.

    Notes
    -----
    Array API 2025.12, `roll`.

    Examples
    --------
    >>> import ndx
    >>> ndx.roll(ndx.asarray([1, 2, 3]), 1)
    NDArray([3, 1, 2])
    """
    x = argument(x, "roll")
    found = rolled(x, shift, axis)
    if found is not None:
        return found
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, axis=0), x.shape)
    axes, shifts = axes_of(axis), axes_of(shift, "shift")
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(shifts) != len(axes):
        msg = f"roll: {len(shifts)} shifts for {len(axes)} axes; they must be as many"
        raise ValueError(msg)
    total = dict.fromkeys(range(x.ndim), 0)
    for places, item in zip(shifts, axes, strict=True):
        total[axis_index(item, x.ndim)] += places
    out = empty_like(x)
    if not x.size:
        return out
    # Each axis is cut in two: the part that moves up, and the part that wraps around.
    cuts = []
    for item, places in total.items():
        cut = places % x.shape[item]
        whole = [(slice(cut, None), slice(None, x.shape[item] - cut))]
        cuts.append(whole + [(slice(None, cut), slice(-cut, None))] * bool(cut))
    for pieces in product(*cuts):
        target, source = zip(*pieces, strict=True) if pieces else ((), ())
        out[target] = x[source]
    return out


def tile(x: Array, repetitions: Sequence[int], /) -> NDArray:
    """Return copies of an array laid side by side.

    Parameters
    ----------
    x : NDArray
    repetitions : tuple of int
        Number of copies along each axis, aligned at the last axis. Missing lengths and
        missing repetitions count as 1.

    Returns
    -------
    NDArray
        A new array with ``max(x.ndim, len(repetitions))`` axes.

    Raises
    ------
    ValueError
        If a number is negative.

    Notes
    -----
    Array API 2025.12, `tile`.

    Examples
    --------
    >>> import ndx
    >>> ndx.tile(ndx.asarray([1, 2]), (2, 2))
    NDArray([[1, 2, 1, 2],
             [1, 2, 1, 2]])
    """
    x = argument(x, "tile")
    found = tiled(x, repetitions)
    if found is not None:
        return found
    repetitions = axes_of(repetitions, "repetitions")
    if any(count < 0 for count in repetitions):
        msg = f"repetitions {repetitions} has a negative number; they are 0 or more"
        raise ValueError(msg)
    ndim = max(x.ndim, len(repetitions))
    counts = (1,) * (ndim - len(repetitions)) + tuple(repetitions)
    lengths = (1,) * (ndim - x.ndim) + x.shape
    if ndim + sum(count != 1 for count in counts) > _MOST_AXES:
        return _tile_by_axes(x, counts, lengths)
    # A new axis before each repeated one is broadcast to make the copies.
    split, wanted = [], []
    for count, length in zip(counts, lengths, strict=True):
        split += [length] if count == 1 else [1, length]
        wanted += [length] if count == 1 else [count, length]
    spread = broadcast_to(reshape(x, tuple(split)), tuple(wanted))
    pairs = zip(counts, lengths, strict=True)
    return reshape(spread, tuple(a * b for a, b in pairs), copy=True)


def _tile_by_axes(x, counts, lengths):
    """Tile along one axis after the other, if all at once would need too many axes."""
    x, shape = reshape(x, lengths), list(lengths)
    for axis, count in enumerate(counts):
        if count != 1:
            before, after = prod(shape[:axis]), prod(shape[axis:])
            spread = broadcast_to(
                reshape(x, (before, 1, after)), (before, count, after)
            )
            shape[axis] *= count
            x = reshape(spread, tuple(shape), copy=True)
    return x

"""Means of trees of arrays, in a fixed order of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import ndx
from ndx._lib.trees import map_tree

__all__ = ["add", "copied", "mean", "mean_of_sums"]


def _ours(leaf: Any) -> Any:
    """Return an array of NumPy as one of ndx, over the same memory; others as is."""
    if isinstance(leaf, np.ndarray) or (
        isinstance(leaf, np.generic) and not isinstance(leaf, float | complex)
    ):
        try:
            return ndx.asarray(leaf)
        except TypeError:
            # Text, for example, which has no mean.
            return leaf
    return leaf


def _is_averaged(leaf: Any) -> bool:
    """Return whether a leaf has a mean: counters, names and switches have none."""
    leaf = _ours(leaf)
    if isinstance(leaf, ndx.NDArray):
        return bool(ndx.isdtype(leaf.dtype, ("real floating", "complex floating")))
    return isinstance(leaf, float | complex)


def mean(trees: Sequence[Any], weights: Sequence[int]) -> Any:
    """Return the weighted mean of trees, leaf by leaf.

    Leaves that are no floating-point numbers are those of the first tree. The order of
    the additions is that of the trees, so that equal trees give equal results, to the
    last bit.
    """
    if len(trees) == 1:
        return trees[0]
    if len(set(weights)) == 1:
        return mean_of_sums(trees, len(trees))
    weighted = [
        map_tree(lambda x, by=weight: x * by if _is_averaged(x) else x, tree)
        for tree, weight in zip(trees, weights, strict=True)
    ]
    return mean_of_sums(weighted, sum(weights))


def mean_of_sums(trees: Sequence[Any], count: int) -> Any:
    """Return the sum of trees of sums, by the count of what was added."""

    def of(*leaves: Any) -> Any:
        found = [_ours(leaf) for leaf in leaves]
        if not any(map(_is_averaged, found)):
            return found[0]
        added = found[0]
        for leaf in found[1:]:
            added = added + _beside(leaf, added)
        return added / count if count > 1 else added

    return map_tree(of, *trees)


def add(tree: Any, other: Any) -> Any:
    """Return the sum of two trees of gradients."""

    def of(*leaves: Any) -> Any:
        x, y = map(_ours, leaves)
        return x + _beside(y, x) if _is_averaged(x) or _is_averaged(y) else x

    return map_tree(of, tree, other)


def copied(tree: Any, device: Any = None) -> Any:
    """Return a tree with arrays of its own, in no workspace; on a device, if given.

    Arrays of NumPy become arrays of ndx.
    """

    def of(leaf: Any) -> Any:
        leaf = _ours(leaf)
        if not isinstance(leaf, ndx.NDArray):
            return leaf
        if device is not None and leaf.device != device:
            return leaf.to_device(device)
        return ndx.asarray(leaf, copy=True)

    with ndx.no_workspace():
        return map_tree(of, tree)


def _beside(leaf: Any, other: Any) -> Any:
    """Return a leaf on the device of another one, which must be of the same kind."""
    if _kind(leaf) != _kind(other):
        raise ValueError(
            f"two results can't be added: {_kind(other)} and {_kind(leaf)}; a step "
            "must return arrays of the same shapes and dtypes for each batch"
        )
    if not isinstance(leaf, ndx.NDArray) or leaf.device == other.device:
        return leaf
    return leaf.to_device(other.device)


def _kind(leaf: Any) -> str:
    """Return what must agree between leaves that are added."""
    if isinstance(leaf, ndx.NDArray):
        return f"an array of shape {leaf.shape} and dtype {leaf.dtype}"
    # A Python float may meet an int: a score that happens to be whole.
    return "a number" if isinstance(leaf, int | float | complex) else f"{leaf!r}"

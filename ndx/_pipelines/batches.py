"""Batches: arrays in tuples, lists, dicts and dataclasses, nested as one likes."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

__all__ = ["map_leaves"]


def map_leaves(function: Callable[[Any], Any], batch: Any) -> Any:
    """Return a batch of the same structure, with `function` of each leaf.

    Parameters
    ----------
    function : callable
        Called once for each leaf, also if it occurs several times.
    batch : object
        Tuples, named tuples, lists, dicts and instances of dataclasses (also frozen
        ones, and those of derived classes) are walked. All else is a leaf.

    Returns
    -------
    object
        New containers: one that the caller changes later is not the one it gave.

    Examples
    --------
    >>> from ndx._pipelines.batches import map_leaves
    >>> map_leaves(lambda leaf: leaf + 1, {"x": (1, 2), "y": [3]})
    {'x': (2, 3), 'y': [4]}
    """
    return _Walk(function).visit(batch)


class _Walk:
    """One walk over a batch; it remembers what it has been to."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        # By identity; what was visited is kept, so that no identity is used again.
        self.known: dict[int, tuple[Any, Any]] = {}

    def visit(self, item: Any) -> Any:
        """Return what an item becomes, the same at each of its occurrences."""
        if id(item) in self.known:
            return self.known[id(item)][1]
        if isinstance(item, list | dict):
            # Known before its items are: a list may contain itself.
            made = self.note(item, copy.copy(item))
            keys = range(len(item)) if isinstance(item, list) else list(item)
            for key in keys:
                made[key] = self.visit(item[key])
            return made
        if isinstance(item, tuple):
            return self.note(item, self.of_tuple(item))
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return self.of_dataclass(item)
        return self.note(item, self.function(item))

    def note(self, item: Any, made: Any) -> Any:
        self.known[id(item)] = item, made
        return made

    def of_tuple(self, item: tuple[Any, ...]) -> Any:
        parts = [self.visit(part) for part in item]
        if all(made is part for made, part in zip(parts, item, strict=True)):
            # It can't be changed, and not every type of tuple can be made from parts.
            return item
        if hasattr(item, "_make"):
            return item._make(parts)
        return tuple(parts) if type(item) is tuple else type(item)(parts)

    def of_dataclass(self, item: Any) -> Any:
        # Not `replace`, which would run __init__ again.
        made = self.note(item, copy.copy(item))
        for field in dataclasses.fields(item):
            if hasattr(item, field.name):
                value = self.visit(getattr(item, field.name))
                # As the class's own methods do where it is frozen.
                object.__setattr__(made, field.name, value)
        return made

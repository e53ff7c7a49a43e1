"""Trees: values nested in containers. This module alone decides what a container is.

Batches, parameters, results of workers and of functions in workspaces are trees.
"""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
from collections.abc import (
    Callable,
    Iterator,
    Mapping,
    MutableMapping,
    MutableSequence,
    Sequence,
)
from typing import Any

import numpy as np

from ndx._lib.caches import cached

__all__ = ["check_structure", "leaves", "map_tree", "parts_of"]

# Sequences of text or numbers, of which none holds an array, and files of arrays, which
# are read when they are asked for one.
_LEAVES = (
    *(str, bytes, bytearray, memoryview, range, array.array, np.ndarray),
    np.lib.npyio.NpzFile,
)
# What `leaves` enters by iterating over it.
_ENTERED = (tuple, list, set, frozenset)
# Containers whose shallow copies have items of their own. A class that wraps a dict may
# copy the reference to it.
_COPIED = (dict, list, collections.deque, collections.UserDict, collections.UserList)


def parts_of(tree: Any) -> Mapping[Any, Any] | None:
    """Return the parts of a container by key, index or name; None for a leaf.

    Parameters
    ----------
    tree : any
        Containers are mappings, sequences (but for text and numbers), and instances of
        dataclasses and of attrs' classes.

    Examples
    --------
    >>> from ndx._lib.trees import parts_of
    >>> parts_of(["a", "b"]), parts_of("ab")
    ({0: 'a', 1: 'b'}, None)
    """
    kind = _kind_of(type(tree))
    if kind is None:
        return None
    if kind is Sequence:
        return dict(enumerate(tree))
    if kind is Mapping:
        return dict(tree)
    return {name: getattr(tree, name) for name in kind if hasattr(tree, name)}


@cached("classes of trees", 1024)
def _kind_of(cls: type) -> Any:
    """Return what the instances of a class are.

    `Mapping`, `Sequence`, the names of their fields for dataclasses and classes of
    attrs, or None for leaves.
    """
    if issubclass(cls, _LEAVES):
        return None
    for kind in Mapping, Sequence:
        if issubclass(cls, kind):
            return kind
    if hasattr(cls, "__dataclass_fields__"):
        return tuple(each.name for each in dataclasses.fields(cls))
    attributes = getattr(cls, "__attrs_attrs__", None)
    return attributes and tuple(each.name for each in attributes)


def leaves(tree: Any, kinds: tuple[type, ...] = ()) -> Iterator[Any]:
    """Yield each leaf of a tree once, in no particular order.

    Parameters
    ----------
    tree : any
        See `parts_of`. Sets are entered, too, since none is made anew. Containers may
        contain themselves. One that can't be read, such as a closed file, is a leaf.
    kinds : tuple of type, optional
        Sequences and sets of these types alone are entered; default: all containers.

    Examples
    --------
    >>> from ndx._lib.trees import leaves
    >>> sorted(leaves({"a": (1, 2), "b": [{3}, 1]}))
    [1, 2, 3]
    """
    # With what was visited, so that no identity is used again.
    seen: dict[int, Any] = {}
    entered = kinds or _ENTERED
    left = [tree]
    while left:
        item = left.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item
        if type(item) is dict and not kinds:
            left += item.values()
        elif isinstance(item, entered):
            left += item
        elif kinds:
            yield item
        else:
            try:
                parts = parts_of(item)
            except Exception:
                parts = None
            if parts is None:
                yield item
            else:
                left += parts.values()


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return a tree of what a function returns for each leaf.

    Parameters
    ----------
    function : callable
        Called as ``function(leaf, *leaves of the others)``; once for a leaf that occurs
        several times, beside the same leaves of the others.
    tree : any
        See `parts_of`. Containers of the result are new and have the types of this
        tree's. A mapping or sequence that can't be made from its parts becomes a dict
        or a list. A tuple, or another container that can't be changed, stays the same
        if its parts do.
    *others : any
        Trees of the same structure.

    Raises
    ------
    ValueError
        If a tree differs in structure, or a container that can't be made before its
        parts, such as a tuple, contains itself. Lists and dicts may.

    Examples
    --------
    >>> from ndx._lib.trees import map_tree
    >>> map_tree(lambda x, y: x + y, {"a": (1, 2), "b": [3]}, {"a": (4, 5), "b": [6]})
    {'a': (5, 7), 'b': [9]}
    """
    return _Walk(function).visit(tree, others)


class _Walk:
    """One walk over trees; it remembers what it has been to, by identity."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        # With what was visited, so that no identity is used again.
        self.known: dict[Any, tuple[Any, Any]] = {}

    def visit(self, tree: Any, others: tuple[Any, ...]) -> Any:
        """Return what a tree becomes: the same at each of its occurrences."""
        key = (id(tree), *map(id, others)) if others else id(tree)
        if key in self.known:
            made = self.known[key][1]
            if made is _UNFINISHED:
                raise _contains_itself(tree)
            return made
        parts = parts_of(tree)
        if parts is None:
            for other in others:
                if parts_of(other) is not None:
                    raise _differ(tree, other)
            return self.note(key, tree, others, self.function(tree, *others))
        # Known before its parts are: a list may contain itself.
        made = self.note(key, tree, others, _copy_of(tree))
        beside = [_parts_beside(other, tree, parts) for other in others]
        found = {
            name: self.visit(
                part, tuple([each[name] for each in beside]) if beside else ()
            )
            for name, part in parts.items()
        }
        if made is _UNFINISHED:
            return self.note(key, tree, others, _rebuilt(tree, parts, found))
        if type(made) is dict:
            made.update(found)
        else:
            _fill(made, found)
        return made

    def note(self, key: Any, tree: Any, others: tuple[Any, ...], made: Any) -> Any:
        self.known[key] = (tree, others), made
        return made


# Stands for a container that is made after its parts.
_UNFINISHED = object()


def _copy_of(tree: Any) -> Any:
    """Return a copy of a container that is to be filled, if it is of such a kind."""
    kind = type(tree)
    if kind is tuple:
        return _UNFINISHED
    if kind is list or kind is dict:
        return tree.copy()
    is_filled = isinstance(tree, _COPIED) or not isinstance(tree, Mapping | Sequence)
    return copy.copy(tree) if is_filled else _UNFINISHED


def _fill(made: Any, found: Mapping[Any, Any]) -> None:
    """Put new parts into a copy of a container."""
    if isinstance(made, _COPIED):
        for key, part in found.items():
            made[key] = part
        return
    for name, part in found.items():
        # As the class's own methods do where it is frozen. `dataclasses.replace` would
        # run __init__ again.
        object.__setattr__(made, name, part)


def _rebuilt(tree: Any, parts: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    """Return a container of new parts that is like a given one."""
    is_changeable = type(tree) is not tuple and isinstance(
        tree, MutableMapping | MutableSequence
    )
    if not is_changeable and all(found[key] is part for key, part in parts.items()):
        # Not every class can be made from parts.
        return tree
    if type(tree) is tuple:
        return tuple(found.values())
    if isinstance(tree, tuple) and hasattr(tree, "_make"):
        return tree._make(found.values())
    plain = found if isinstance(tree, Mapping) else list(found.values())
    try:
        made = type(tree)(plain)
        again = parts_of(made)
    except Exception:
        return plain
    # The class may understand something else by its argument.
    is_like = again is not None and again.keys() == found.keys()
    return made if is_like and all(again[k] is found[k] for k in found) else plain


def check_structure(tree: Any, other: Any) -> None:
    """Raise a ValueError if two trees differ in structure."""
    seen: dict[tuple[int, int], Any] = {}
    left = [(tree, other)]
    while left:
        one, two = left.pop()
        if (id(one), id(two)) in seen:
            continue
        # Kept, so that no identity is used again.
        seen[id(one), id(two)] = one, two
        parts = parts_of(one)
        if parts is not None:
            beside = _parts_beside(two, one, parts)
            pairs = [(part, beside[key]) for key, part in parts.items()]
            left += reversed(pairs)
        elif parts_of(two) is not None:
            raise _differ(one, two)


def _parts_beside(other: Any, tree: Any, parts: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the parts of another tree, which must have the keys of the first one's."""
    found = parts_of(other)
    if found is None or found.keys() != parts.keys():
        raise _differ(tree, other)
    return found


def _differ(tree: Any, other: Any) -> ValueError:
    return ValueError(
        f"two trees differ in structure: {_described(tree)} and {_described(other)}; "
        "give the same nested containers with the same keys"
    )


def _described(tree: Any) -> str:
    parts = parts_of(tree)
    if parts is None:
        return type(tree).__name__
    return f"{type(tree).__name__} with {list(parts)}"


def _contains_itself(tree: Any) -> ValueError:
    return ValueError(
        f"a {type(tree).__name__} contains itself, and can't be made anew from its "
        "parts before these are; give containers without cycles, or lists and dicts"
    )

"""Trees: values nested in tuples, lists, dicts and dataclasses."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["check_structure", "leaves", "map_tree"]


def map_tree(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Return a tree of what a function returns for each leaf.

    Parameters
    ----------
    function : callable
        Called as ``function(leaf, *leaves of the others)``.
    tree : any
        Tuples (named ones, too), lists, mutable mappings and dataclasses are nodes,
        anything else is a leaf. Nodes of the result have the types of this tree's.
    *others : any
        Trees of the same structure.

    Raises
    ------
    ValueError
        If a tree differs in structure.
    """
    parts = _parts(tree)
    if parts is None:
        return function(tree, *others)
    found = {}
    for key, part in parts.items():
        found[key] = map_tree(
            function, part, *(_part(other, key, tree) for other in others)
        )
    return _rebuilt(tree, found)


def check_structure(tree: Any, other: Any) -> None:
    """Raise a ValueError if two trees differ in structure."""
    parts = _parts(tree)
    if parts is None:
        if _parts(other) is not None:
            raise _differ(tree, other)
        return
    for key, part in parts.items():
        check_structure(part, _part(other, key, tree))


def leaves(tree: Any) -> Iterator[Any]:
    """Yield the leaves of a tree, from left to right."""
    parts = _parts(tree)
    if parts is None:
        yield tree
        return
    for part in parts.values():
        yield from leaves(part)


def _parts(tree: Any) -> dict[Any, Any] | None:
    """Return the parts of a node by key; None for a leaf."""
    if isinstance(tree, tuple | list):
        return dict(enumerate(tree))
    if isinstance(tree, MutableMapping):
        return dict(tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return {each.name: getattr(tree, each.name) for each in _fields(tree)}
    return None


def _fields(tree: Any) -> list[dataclasses.Field[Any]]:
    return [each for each in dataclasses.fields(tree) if each.init]


def _part(other: Any, key: Any, tree: Any) -> Any:
    parts, wanted = _parts(other), _parts(tree)
    if parts is None or wanted is None or parts.keys() != wanted.keys():
        raise _differ(tree, other)
    return parts[key]


def _differ(tree: Any, other: Any) -> ValueError:
    return ValueError(
        f"two trees differ in structure: {_described(tree)} and {_described(other)}; "
        "give the same nested containers with the same keys"
    )


def _described(tree: Any) -> str:
    parts = _parts(tree)
    if parts is None:
        return type(tree).__name__
    return f"{type(tree).__name__} with {list(parts)}"


def _rebuilt(tree: Any, parts: dict[Any, Any]) -> Any:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*parts.values())
    if isinstance(tree, tuple | list):
        return type(tree)(parts.values())
    if isinstance(tree, MutableMapping):
        if type(tree) is dict:
            return parts
        # A copy keeps what the class holds beside its items, as `defaultdict` does.
        made: Any = copy.copy(tree)
        made.update(parts)
        return made
    return dataclasses.replace(tree, **parts)

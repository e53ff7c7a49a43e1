"""What the package keeps for reuse: each cache says how much, and can be emptied.

Rooms register theirs when they are imported. The tables in docs/architecture.md have a
row for each of them, and for what only looks like one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

__all__ = ["Cache", "cached", "empty_all", "known", "register"]

P = ParamSpec("P")
T = TypeVar("T")


class Cache(NamedTuple):
    """One free list or cache of the package."""

    # The most entries that it ever has; None: a few for each pool.
    most: int | None
    # Returns the number of entries, and their bytes (0: objects of Python).
    read: Callable[[], tuple[int, int]]
    empty: Callable[[], object]


known: dict[str, Cache] = {}


def register(
    name: str,
    most: int | None,
    read: Callable[[], tuple[int, int]],
    empty: Callable[[], object],
) -> None:
    """Add a cache to those that `ndx.memory.caches` reports, under a name."""
    known[name] = Cache(most, read, empty)


def cached(name: str, most: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that keeps the last results of a function, and registers them.

    Parameters
    ----------
    name : str
        For `ndx.memory.caches`.
    most : int
        The most results to keep. What users' functions and classes are keys of may not
        grow without a bound.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        found = functools.lru_cache(maxsize=most)(function)
        register(
            name, most, lambda: (found.cache_info().currsize, 0), found.cache_clear
        )
        return found

    return decorate


def empty_all() -> None:
    """Empty every cache."""
    for each in list(known.values()):
        each.empty()

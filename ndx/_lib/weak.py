"""Weak sets that several threads use."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from weakref import WeakSet

__all__ = ["members"]

T = TypeVar("T")


def members(weak_set: WeakSet[T]) -> list[T]:
    """Return the members of a weak set, to which other threads may add meanwhile."""
    while True:
        try:
            return list(weak_set)
        except RuntimeError:
            # Another thread has added something meanwhile.
            continue

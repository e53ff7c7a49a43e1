"""Items taken ahead of their use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

import ndx

__all__ = ["ahead"]


@contextlib.contextmanager
def ahead(items: Iterable[Any], depth: int) -> Iterator[Iterator[Any]]:
    """Take up to `depth` items ahead, by `ndx.prefetch`, until the scope ends.

    Items of a list or a tuple are taken as they are.

    Yields
    ------
    iterator
        The items. An error of `items` is raised after the items before it.
    """
    # What is in a list is made already: a thread would only copy it.
    if not depth or isinstance(items, list | tuple):
        yield iter(items)
        return
    # Each worker holds the batch that it computes.
    with ndx.prefetch(items, depth=depth, on_held="grow") as batches:
        yield iter(batches)

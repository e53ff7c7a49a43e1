"""Items taken ahead of their use, by a thread."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any

from ndx._pipelines.workers import Outcome, Team

__all__ = ["ahead"]


@contextlib.contextmanager
def ahead(items: Iterable[Any], depth: int) -> Iterator[Iterator[Any]]:
    """Take up to `depth` items ahead, in a thread that ends with the scope.

    Yields
    ------
    iterator
        The items. An error of `items` is raised after the items before it.
    """
    if not depth:
        yield iter(items)
        return
    taken: queue.SimpleQueue[Outcome] = queue.SimpleQueue()
    places = threading.Semaphore(depth)
    stopped = threading.Event()

    def take() -> None:
        try:
            source = iter(items)
            while places.acquire() and not stopped.is_set():
                taken.put(Outcome(0, next(source)))
        except StopIteration:
            taken.put(Outcome(None))
        except BaseException as error:
            taken.put(Outcome(None, error=error))

    def stop() -> None:
        stopped.set()
        places.release()

    team = Team([take], stop, name="ndx-ahead", computing=False)
    try:
        yield _taken(taken, places)
    finally:
        team.close()


def _taken(
    taken: queue.SimpleQueue[Outcome], places: threading.Semaphore
) -> Iterator[Any]:
    while (outcome := taken.get()).key is not None:
        places.release()
        yield outcome.value
        del outcome
    if outcome.error is not None:
        yield outcome.result()

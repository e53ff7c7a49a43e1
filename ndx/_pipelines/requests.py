"""Requests of many threads, gathered to batches."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Hashable
from concurrent.futures import Future
from typing import Any

__all__ = ["Request", "Requests", "Statistics", "closed", "rows_of"]


@dataclasses.dataclass(eq=False)
class Request:
    """Arrays that wait for an answer.

    Attributes
    ----------
    args : tuple of NDArray
        The arguments.
    rows : int
        The length of the first axis of each.
    key : hashable
        Requests with equal keys may be computed together.
    future : concurrent.futures.Future
        Where the answer goes.
    since : float
        When it came, in seconds.
    """

    args: tuple[Any, ...]
    rows: int
    key: Hashable
    future: Future[Any] = dataclasses.field(default_factory=Future)
    since: float = dataclasses.field(default_factory=time.monotonic)


def rows_of(args: tuple[Any, ...]) -> int:
    """Return the length of the first axis of the first argument; 1 without one."""
    shape = getattr(args[0], "shape", ()) if args else ()
    return int(shape[0]) if shape else 1


def closed() -> RuntimeError:
    """Return the error of a request that comes too late."""
    return RuntimeError(
        "the predictor is closed: it takes no more requests. Make another, or close it "
        "later"
    )


class Statistics(dict[str, int]):
    """Counts of requests and batches, from several threads."""

    def __init__(self) -> None:
        super().__init__(
            requests=0, batches=0, rows=0, full_batches=0, largest_batch=0, errors=0
        )
        self._lock = threading.RLock()

    def count_request(self) -> None:
        """Note that a request came."""
        with self._lock:
            self["requests"] += 1

    def count_batch(self, rows: int, full: bool) -> None:
        """Note that a batch is computed."""
        with self._lock:
            self["batches"] += 1
            self["rows"] += rows
            self["full_batches"] += full
            self["largest_batch"] = max(self["largest_batch"], rows)

    def count_error(self) -> None:
        """Note that a request was answered by an error."""
        with self._lock:
            self["errors"] += 1


class _Group(deque[Request]):
    """Requests with one key, and the sum of their rows."""

    rows = 0

    def append(self, request: Request) -> None:
        super().append(request)
        self.rows += request.rows


class Requests:
    """The requests that wait, by key, in the order in which they came.

    Parameters
    ----------
    max_batch : int
        The rows at which a batch is full. A larger request is a batch by itself; with
        0 each is, also one without rows.
    deadline : float
        Seconds after which a request waits for no others.
    limit : int or None
        How many requests may wait; more wait in `put`.
    """

    def __init__(self, max_batch: int, deadline: float, limit: int | None):
        self._max_batch, self._deadline, self._limit = max_batch, deadline, limit
        # Reentrant, since a finalizer may close it in a thread that is in here.
        lock = threading.RLock()
        self._came, self._left = threading.Condition(lock), threading.Condition(lock)
        self._waiting: dict[Hashable, _Group] = {}
        self._count = 0
        self._closed = False
        self._failure: BaseException | None = None
        self.stats = Statistics()

    @property
    def waiting(self) -> int:
        """How many requests wait."""
        return self._count

    def put(self, request: Request) -> None:
        """Add a request; wait for room, if there is a limit."""
        with self._came:
            while self._limit is not None and self._count >= self._limit:
                self.check_open()
                self._left.wait()
            self.check_open()
            self._waiting.setdefault(request.key, _Group()).append(request)
            self._count += 1
            self.stats.count_request()
            self._came.notify()

    def check_open(self) -> None:
        """Raise if no more requests are taken."""
        if self._failure is not None:
            raise RuntimeError(
                f"the predictor has no workers: {self._failure!r} was raised when one "
                "was to start"
            ) from self._failure
        if self._closed:
            raise closed()

    def take(self) -> list[Request] | None:
        """Wait for a batch, and return it; None after the last one."""
        with self._came:
            while True:
                key = self._due()
                if key is not None:
                    return self._popped(key)
                if self._closed:
                    return None
                self._came.wait(self._seconds_left())

    def _due(self) -> Hashable | None:
        """Return the key of the batch whose time has come; the oldest of several."""
        now = time.monotonic()
        due = [
            (found[0].since, i, key)
            for i, (key, found) in enumerate(self._waiting.items())
            if self._closed
            or now - found[0].since >= self._deadline
            or found.rows >= self._max_batch
        ]
        return min(due)[2] if due else None

    def _seconds_left(self) -> float | None:
        if not self._waiting:
            return None
        oldest = min(found[0].since for found in self._waiting.values())
        return max(0.0, oldest + self._deadline - time.monotonic())

    def _popped(self, key: Hashable) -> list[Request]:
        found = self._waiting[key]
        batch = [found.popleft()]
        rows = batch[0].rows
        while self._max_batch and found and rows + found[0].rows <= self._max_batch:
            rows += found[0].rows
            batch.append(found.popleft())
        full = rows >= self._max_batch or bool(found)
        found.rows -= rows
        if not found:
            del self._waiting[key]
        self._count -= len(batch)
        self._left.notify_all()
        self.stats.count_batch(rows, full)
        return batch

    def close(self) -> None:
        """Take no more requests; those that wait are due at once."""
        with self._came:
            self._closed = True
            self._came.notify_all()
            self._left.notify_all()

    def fail(self, error: BaseException) -> None:
        """Answer all requests, and those to come, by an error of the workers."""
        with self._came:
            self._failure = error
            waiting = [each for found in self._waiting.values() for each in found]
            self._waiting.clear()
            self._count = 0
            self.close()
        for each in waiting:
            if each.future.set_running_or_notify_cancel():
                each.future.set_exception(error)

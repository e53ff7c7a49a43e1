"""An epoch: what the producer and the consumer of one pass over a source share."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any, NamedTuple

from ndx._pipelines.signals import Signal

__all__ = ["END", "Epoch", "Outcome"]


class Outcome(NamedTuple):
    """What the consumer gets: a batch, an error, or neither at the end."""

    batch: Any = None
    error: BaseException | None = None
    is_last: bool = False


END = Outcome(is_last=True)


class Epoch:
    """One pass over a source.

    It refers to neither side, so that each of them can go when it is not used any more.

    Attributes
    ----------
    ready : deque of Outcome
        What is made, and not taken yet.
    arrived : Signal
        Set when `ready` gets an item, or the epoch is cancelled.
    finished : threading.Event
        Set when the producer has let go of the source.
    wake : Signal
        Set to wake the producer, which may have something to do.
    producer : int, optional
        The ident of the thread that makes the items, once it does.
    consumer : int, optional
        The ident of the thread that waits for an item now.
    cancelled, superseded : bool
        Whether nobody wants any more items; and because a newer epoch has begun.
    closing : bool
        Whether somebody waits for `finished`, and takes `failure`.
    failure : BaseException, optional
        What the source raised when it was closed.
    """

    def __init__(self, wake: Signal) -> None:
        self.ready: deque[Outcome] = deque()
        self.wake = wake
        self.producer: int | None = None
        self.arrived = Signal()
        self.finished = threading.Event()
        self.consumer: int | None = None
        self.cancelled = False
        self.superseded = False
        self.closing = False
        self.failure: BaseException | None = None

    def put(self, outcome: Outcome) -> None:
        """Hand an item to the consumer; drop it if nobody wants it."""
        self.ready.append(outcome)
        if self.cancelled:
            self.ready.clear()
        self.arrived.set()

    def cancel(self) -> None:
        """Drop all items, and want no more. It never waits: finalizers call it."""
        self.cancelled = True
        self.ready.clear()
        self.arrived.set()

    def raise_failure(self) -> None:
        """Raise what the source raised when it was closed, if it did."""
        failure, self.failure = self.failure, None
        try:
            if failure is not None:
                raise failure
        finally:
            del failure

    def waiting_consumer(self) -> int | None:
        """Return the ident of the thread that waits, if there is nothing for it."""
        return None if self.ready else self.consumer

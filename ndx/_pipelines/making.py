"""What makes the batches of a prefetch: a thread, or the consumer itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ndx._pipelines.epochs import END, Epoch, Outcome
from ndx._pipelines.leases import Ring, SlotWait, is_alone_with
from ndx._pipelines.producing import (
    CLOSE_TIMEOUT,
    Producer,
    close_iterator,
    make_batch,
    waits_for_itself,
)
from ndx._pipelines.signals import Signal

if TYPE_CHECKING:
    from contextvars import Context

    from ndx._pipelines.settings import Settings

__all__ = ["DirectMaker", "ThreadMaker"]


class ThreadMaker:
    """Makes batches by a thread; the last of those that use it ends the thread."""

    def __init__(
        self, source: Iterable[Any], settings: Settings, context: Context
    ) -> None:
        self.source = source
        self.settings = settings
        self.context = context
        self.producer: Producer | None = None
        self.closed = False
        self.epochs = 0
        self.waits = 0

    def start(self) -> Epoch:
        """Begin an epoch, in a new thread if there is none in this process."""
        check_open(self.closed)
        if self.producer is None or not self.producer.is_usable():
            # Kept before its thread begins: Ctrl-C may come at any time.
            self.producer = Producer(self.source, self.settings, self.context)
            self.producer.begin()
        self.epochs += 1
        return self.producer.start()

    def receive(self, epoch: Epoch) -> Outcome:
        """Wait for the next outcome of an epoch."""
        self.check_caller()
        assert self.producer is not None
        self.waits += 1
        return self.producer.receive(epoch)

    def check_caller(self) -> None:
        """Raise in a forked child, where the thread is not, and in that thread."""
        if self.producer is not None and self.producer.runs_this():
            raise waits_for_itself()
        if self.producer is not None and self.producer.is_parents():
            raise RuntimeError(
                "this iteration of a prefetch belongs to the process that was forked, "
                "where its thread is; start a new one here"
            )

    def let_go(self, epoch: Epoch) -> None:
        """Want no more of an epoch."""
        assert self.producer is not None
        self.producer.let_go(epoch)

    def wait_for_end(self, epoch: Epoch) -> None:
        """Wait until the producer has let go of the source."""
        producer = self.producer
        if producer is None or producer.is_elsewhere():
            return
        if not epoch.finished.wait(CLOSE_TIMEOUT):
            producer.warn_of_slow_source()
        epoch.raise_failure()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self.closed = True
        if self.producer is None or self.producer.is_parents():
            return
        self.producer.stop()
        if not self.producer.join(CLOSE_TIMEOUT):
            self.producer.warn_of_slow_source()
        if self.producer.wanted is not None:
            self.producer.wanted.raise_failure()

    def stats(self) -> dict[str, int]:
        """Return the counters of the ring and the epochs."""
        producer = self.producer
        ring = Ring.empty() if producer is None else producer.ring
        epoch = None if producer is None else producer.wanted
        return ring.stats() | {
            "ready": 0 if epoch is None else len(epoch.ready),
            "source_waits": self.waits,
            "epochs": self.epochs,
        }

    def describe(self) -> str:
        """Return the state, in words."""
        if self.closed:
            return "closed"
        if self.producer is None:
            return "not started"
        stats = self.stats()
        return f"{stats['ready']} ready, {stats['slots']} slots"

    def __del__(self) -> None:
        producer = getattr(self, "producer", None)
        if producer is not None and not producer.is_parents():
            producer.stop()


class DirectEpoch(Epoch):
    """An epoch that has its iterator over the source."""

    iterator: Iterator[Any] | None = None


class DirectMaker:
    """Makes each batch when it is asked for, in the consumer's thread."""

    def __init__(
        self, source: Iterable[Any], settings: Settings, context: Context
    ) -> None:
        self.source = source
        self.settings = settings
        self.context = context
        self.ring = Ring.empty()
        self.thread: threading.Thread | None = None
        self.wanted: DirectEpoch | None = None
        self.closed = False
        self.epochs = 0

    def start(self) -> Epoch:
        """Begin an epoch; the one before ends."""
        check_open(self.closed)
        if self.wanted is not None:
            self.wanted.superseded = True
            self.let_go(self.wanted)
        self.epochs += 1
        self.wanted = DirectEpoch(Signal())
        return self.wanted

    def receive(self, epoch: Epoch) -> Outcome:
        """Make a batch."""
        assert isinstance(epoch, DirectEpoch)
        if epoch.cancelled:
            return END
        thread = threading.current_thread()
        if self.thread is not thread:
            # Workspaces belong to a thread. Batches in the old ones stay valid.
            self.ring = self.settings.ring()
            self.thread = thread
        try:
            return Outcome(self.context.run(self._make, epoch))
        except StopIteration:
            return END

    def _make(self, epoch: DirectEpoch) -> Any:
        if epoch.iterator is None:
            epoch.iterator = iter(self.source)
        me = threading.get_ident()
        wait = SlotWait(
            self.ring,
            self.settings.grows,
            self.settings.patience,
            lambda: me,
            is_alone_with,
        )
        while (slot := wait.attempt()) is None:
            time.sleep(wait.delay)
        return make_batch(slot, epoch.iterator, self.settings, self.ring)

    def check_caller(self) -> None:
        """Whoever calls makes the batches."""

    def let_go(self, epoch: Epoch) -> None:
        """Close the source's iterator, if it was made for this epoch."""
        assert isinstance(epoch, DirectEpoch)
        epoch.cancel()
        iterator, epoch.iterator = epoch.iterator, None
        if iterator is not None and iterator is not self.source:
            # A finalizer may call this while the source runs in the context itself.
            self.context.copy().run(close_iterator, iterator)

    def wait_for_end(self, epoch: Epoch) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Let go of the ring."""
        self.closed = True
        self.ring.drop()

    def stats(self) -> dict[str, int]:
        """Return the counters of the ring and the epochs."""
        return self.ring.stats() | {
            "ready": 0,
            "source_waits": self.ring.counters.batches,
            "epochs": self.epochs,
        }

    def describe(self) -> str:
        """Return the state, in words."""
        return "closed" if self.closed else "not ahead"


def check_open(closed: bool) -> None:
    """Raise if a prefetch was closed."""
    if closed:
        raise RuntimeError("this prefetch is closed; make a new one")

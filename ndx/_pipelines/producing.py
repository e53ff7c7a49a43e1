"""The producer: a thread that makes batches ahead, for one epoch after another.

A prefetch has one producer for all of its epochs, since workspaces belong to a thread.
The thread refers to nothing that users hold. So it can be told to stop when they let
go, by flags and a signal that never wait.
"""

from __future__ import annotations

import atexit
import itertools
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ndx._lib.background import BackgroundThread
from ndx._lib.weak import members
from ndx._pipelines.epochs import END, Epoch, Outcome
from ndx._pipelines.leases import Ring, Slot, SlotWait, is_alone_with, rest
from ndx._pipelines.settings import Settings, scope_left_open
from ndx._pipelines.signals import Signal

if TYPE_CHECKING:
    from contextvars import Context

__all__ = ["Producer", "close_iterator", "make_batch", "waits_for_itself"]

# Seconds that closing, or Python's exit, waits for the source's current step.
CLOSE_TIMEOUT = 10.0
# Seconds after which a waiting consumer makes sure that the producer is there.
_LOOK_AFTER = 1.0

_numbers = itertools.count(1)
_producers: weakref.WeakSet[Producer] = weakref.WeakSet()


class Producer:
    """A thread that makes the batches of a source ahead.

    Parameters
    ----------
    source : iterable
        Where batches come from.
    settings : Settings
        Of the prefetch.
    context : contextvars.Context
        In which the source runs.
    """

    def __init__(
        self, source: Iterable[Any], settings: Settings, context: Context
    ) -> None:
        self.source = source
        self.settings = settings
        # In a forked child, a thread of the parent may have been inside of it.
        self.context = context.copy()
        self.ring = settings.ring()
        self.wake = Signal()
        self.wanted: Epoch | None = None
        self.stopping = False
        self.process = os.getpid()
        self.thread = BackgroundThread(
            target=self._run, name=f"ndx-prefetch-{next(_numbers)}"
        )
        _producers.add(self)

    # ------------------------------------------------------------ for the consumer

    def begin(self) -> None:
        """Start the thread; whoever calls this can stop it already."""
        try:
            self.thread.start()
        except BaseException:
            # By Ctrl-C, say, while the thread runs already.
            self.stop()
            raise

    def start(self) -> Epoch:
        """Begin an epoch; the one before ends."""
        before, self.wanted = self.wanted, Epoch(self.wake)
        if before is not None:
            before.superseded = True
            before.cancel()
        self.wake.set()
        return self.wanted

    def receive(self, epoch: Epoch) -> Outcome:
        """Return the next outcome; wait until there is one."""
        epoch.consumer = threading.get_ident()
        try:
            while True:
                try:
                    return epoch.ready.popleft()
                except IndexError:
                    pass
                if epoch.cancelled:
                    return END
                self.wake.set()
                came = epoch.arrived.wait(_LOOK_AFTER)
                if not (came or epoch.ready or self.thread.is_alive()):
                    raise RuntimeError(
                        f"the thread {self.thread.name}, which makes the batches of "
                        "this prefetch, has ended; make a new prefetch"
                    )
        finally:
            epoch.consumer = None
            self.wake.set()

    def let_go(self, epoch: Epoch) -> None:
        """Want no more of an epoch, without waiting."""
        epoch.cancel()
        self.wake.set()

    def stop(self) -> None:
        """Tell the thread to end, without waiting."""
        self.stopping = True
        epoch = self.wanted
        if epoch is not None:
            epoch.cancel()
        self.wake.set()

    def join(self, timeout: float) -> bool:
        """Wait until the thread has ended; return whether it has."""
        if self.is_elsewhere() or self.thread.ident is None:
            return True
        self.thread.join(timeout)
        return not self.thread.is_alive()

    def is_elsewhere(self) -> bool:
        """Whether the thread can't be waited for: it runs this, or is a parent's."""
        return self.is_parents() or self.runs_this()

    def runs_this(self) -> bool:
        """Whether this is called by the thread."""
        return self.thread is threading.current_thread()

    def is_usable(self) -> bool:
        """Whether the thread is of this process, and was not told to stop."""
        return not (self.stopping or self.is_parents())

    def is_parents(self) -> bool:
        """Whether the thread runs in the process that this one was forked from."""
        return self.process != os.getpid()

    def warn_of_slow_source(self) -> None:
        """Warn that the source is still in the step that closing has waited for."""
        warnings.warn(
            f"the source of a prefetch is still in its step after {CLOSE_TIMEOUT:g} s; "
            f"its thread {self.thread.name} ends when the step does",
            ResourceWarning,
            stacklevel=3,
        )

    # ------------------------------------------------------------------ the thread

    def _run(self) -> None:
        try:
            while not self.stopping:
                epoch = self.wanted
                if epoch is None or epoch.finished.is_set():
                    del epoch
                    rest(self.wake)
                    continue
                try:
                    self._serve(epoch)
                finally:
                    epoch.finished.set()
                # It may be the last reference to what its consumer has left.
                del epoch
        finally:
            # What batches still use lives on.
            self.ring.drop()
            del self.source, self.context

    def _serve(self, epoch: Epoch) -> None:
        """Make the batches of an epoch, and give its end or its error at the last."""
        iterator = None
        outcome = END
        epoch.producer = threading.get_ident()
        try:
            iterator = self.context.run(iter, self.source)
            while (slot := self._wait(epoch)) is not None:
                epoch.put(Outcome(self.context.run(self._make, slot, iterator)))
        except StopIteration:
            pass
        except BaseException as error:
            outcome = Outcome(error=error)
        try:
            if iterator is not self.source:
                self.context.run(close_iterator, iterator)
        except BaseException as error:
            if not epoch.cancelled and outcome.error is None:
                outcome = Outcome(error=error)
            else:
                self._report(epoch, error)
        epoch.put(outcome)
        # An error's traceback has this frame: together they would be a cycle.
        del outcome

    def _report(self, epoch: Epoch, error: BaseException) -> None:
        """Hand on an error of the source's end, for which no consumer waits."""
        if epoch.closing:
            epoch.failure = error
        else:
            threading.excepthook(
                threading.ExceptHookArgs(
                    (type(error), error, error.__traceback__, self.thread)
                )
            )

    def _make(self, slot: Slot, iterator: Iterator[Any]) -> Any:
        return make_batch(slot, iterator, self.settings, self.ring)

    def _wait(self, epoch: Epoch) -> Slot | None:
        """Wait until a batch is wanted, and return a slot; None: no more is."""
        while not self._is_over(epoch) and len(epoch.ready) >= self.settings.depth:
            rest(self.wake)
        leases = SlotWait(
            self.ring,
            self.settings.grows,
            self.settings.patience,
            epoch.waiting_consumer,
            is_alone_with,
        )
        while not self._is_over(epoch):
            slot = leases.attempt()
            if slot is not None:
                return slot
            rest(self.wake, leases.delay)
        return None

    def _is_over(self, epoch: Epoch) -> bool:
        return epoch.cancelled or self.stopping


def make_batch(
    slot: Slot, iterator: Iterator[Any], settings: Settings, ring: Ring
) -> Any:
    """Return the source's next batch, made in a slot."""
    with settings.filling(ring, slot) as filling:
        batch = next(iterator)
        if filling.is_covered():
            # This ends the source, and so the scope that it is in.
            close_iterator(iterator)
            raise scope_left_open()
        return filling.take_over(batch)


def close_iterator(iterator: Any) -> None:
    """Close a generator, or what has a `close` as it has one."""
    close: Callable[[], object] | None = getattr(iterator, "close", None)
    if close is not None:
        close()


def waits_for_itself() -> RuntimeError:
    """Return the error of a source that asks the prefetch that it serves."""
    return RuntimeError(
        "the source of a prefetch asks that prefetch for a batch: it would wait for "
        "itself. Let it take from what the prefetch was made of"
    )


@atexit.register
def _stop_all() -> None:
    """Stop all threads before Python ends: none is to run in a dying interpreter."""
    running = [each for each in members(_producers) if not each.is_parents()]
    for producer in running:
        producer.stop()
    deadline = time.monotonic() + CLOSE_TIMEOUT
    for producer in running:
        producer.join(max(0.0, deadline - time.monotonic()))

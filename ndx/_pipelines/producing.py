"""What makes the batches of a prefetch: a thread, or the consumer itself.

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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ndx._lib.background import BackgroundThread
from ndx._lib.weak import members
from ndx._pipelines.leases import Ring, Slot, SlotWait, scope_left_open

if TYPE_CHECKING:
    from contextvars import Context

    from ndx._pipelines.prefetching import Settings


__all__ = ["DirectMaker", "END", "Outcome", "ThreadMaker", "waits_for_itself"]

# ---- What both sides share -----------------------------------------------------------


class Signal:
    """A flag that is set any number of times, and wakes the one that waits once.

    `threading.Event.set` takes a lock, so that a finalizer that calls it may wait for
    the thread that it interrupts. This `set` never waits.
    """

    def __init__(self) -> None:
        # Locked while the flag is not set.
        self._lock = threading.Lock()
        self._lock.acquire()

    def set(self) -> None:
        """Wake the waiting thread, or the next that waits."""
        try:
            self._lock.release()
        except RuntimeError:
            # It is set already.
            return

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the flag is set, and clear it; return whether it was set."""
        return self._lock.acquire(timeout=-1 if timeout is None else timeout)


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


# The idents of producers that run no code of users until they are told to.
_resting: set[int] = set()
if hasattr(os, "register_at_fork"):
    # They are threads of the parent. A thread of the child may get such a number.
    os.register_at_fork(after_in_child=_resting.clear)


def is_alone_with(consumer: object) -> bool:
    """Whether no threads run but this one, that of an ident, and those that rest."""
    known = {consumer, threading.get_ident()} | _resting
    return all(thread.ident in known for thread in threading.enumerate())


def rest(wake: Signal, timeout: float | None = None) -> None:
    """Wait for a signal, in a thread that runs code of users only after it."""
    me = threading.get_ident()
    _resting.add(me)
    try:
        wake.wait(timeout)
    finally:
        _resting.discard(me)


# ---- The thread ----------------------------------------------------------------------


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
        leases = SlotWait(self.ring, epoch.waiting_consumer, is_alone_with)
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


# ---- For the consumer ----------------------------------------------------------------


class Maker:
    """Makes the batches of a prefetch, one epoch after the other."""

    def __init__(self, source: Any, settings: Settings, context: Context) -> None:
        self.source = source
        self.settings = settings
        self.context = context
        self.ring = Ring.empty()
        self.thread: threading.Thread | None = None
        self.closed = False
        self.epochs = self.waits = 0

    def prepare(self) -> None:
        """Have a ring of this thread: a thread's workspaces are its own.

        Batches of an earlier ring stay valid.
        """
        thread = threading.current_thread()
        if self.thread is not thread:
            self.ring = self.settings.ring()
            self.thread = thread

    def check_open(self) -> None:
        """Raise if the prefetch was closed."""
        if self.closed:
            raise RuntimeError("this prefetch is closed; make a new one")


class ThreadMaker(Maker):
    """Makes batches by a thread; the last of those that use it ends the thread."""

    producer: Producer | None = None

    def start(self) -> Epoch:
        """Begin an epoch, in a new thread if there is none in this process."""
        self.check_open()
        if self.producer is None or not self.producer.is_usable():
            # Kept before its thread begins: Ctrl-C may come at any time.
            self.producer = Producer(self.source, self.settings, self.context)
            self.ring = self.producer.ring
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
        """End an epoch without waiting for its producer."""
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
        epoch = None if producer is None else producer.wanted
        return self.ring.stats() | {
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


class DirectMaker(Maker):
    """Makes each batch when it is asked for, in the consumer's thread."""

    wanted: DirectEpoch | None = None

    def start(self) -> Epoch:
        """Begin an epoch; the one before ends."""
        self.check_open()
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
        self.prepare()
        try:
            return Outcome(self.context.run(self._make, epoch))
        except StopIteration:
            return END

    def _make(self, epoch: DirectEpoch) -> Any:
        if epoch.iterator is None:
            epoch.iterator = iter(self.source)
        me = threading.get_ident()
        wait = SlotWait(self.ring, lambda: me, is_alone_with)
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
        """Return at once: between two batches nothing runs."""

    def close(self) -> None:
        """Take no more batches, and let go of the ring."""
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

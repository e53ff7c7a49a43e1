"""What makes the batches of a prefetch: a thread, or the consumer itself.

A prefetch has one producer for all of its epochs, since workspaces belong to a thread.
The thread refers to nothing that users hold. So it can be told to stop when they let
go, by flags and a signal that never wait.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, TypeVar

from ndx._pipelines.leases import Ring, Slot, SlotWait, scope_left_open
from ndx._pipelines.sources import length_of, offer_length, progress_bar
from ndx._pipelines.workers import Team

if TYPE_CHECKING:
    from contextvars import Context

    from ndx._pipelines.prefetching import Settings


__all__ = [
    "DirectMaker",
    "END",
    "Epoch",
    "Iteration",
    "Maker",
    "Outcome",
    "Prefetching",
    "ThreadMaker",
    "waits_for_itself",
]

T = TypeVar("T")
I = TypeVar("I", bound="Iteration[Any]")  # noqa: E741 - the usual letters

# ---- What both sides share -----------------------------------------------------------


class Signal:
    """A flag that wakes the one that waits, once.

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
    """

    # That of the source, where the consumer itself runs it.
    iterator: Any = None
    # The idents of the thread that makes the items, and of the one that waits now.
    producer: int | None = None
    consumer: int | None = None
    # Whether nobody wants any more items; and because a newer epoch has begun.
    cancelled = superseded = False
    # Whether somebody waits for the end, and takes an error of it.
    closing = False

    def __init__(self) -> None:
        # What is made, and not taken yet.
        self.ready: deque[Outcome] = deque()

    def cancel(self) -> None:
        """Drop all items, and want no more. It never waits: finalizers call it."""
        self.cancelled = True
        self.ready.clear()


class ThreadEpoch(Epoch):
    """An epoch that a thread makes."""

    # What the source raised when it was closed.
    failure: BaseException | None = None

    def __init__(self, wake: Signal) -> None:
        super().__init__()
        # Set to wake the producer, which may have something to do.
        self.wake = wake
        # Set when `ready` gets an item, or the epoch is cancelled.
        self.arrived = Signal()
        # Set when the producer has let go of the source.
        self.finished = threading.Event()

    def put(self, outcome: Outcome) -> None:
        """Hand an item to the consumer; drop it if nobody wants it."""
        self.ready.append(outcome)
        if self.cancelled:
            self.ready.clear()
        self.arrived.set()

    def cancel(self) -> None:
        super().cancel()
        self.arrived.set()
        self.wake.set()

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


class Producer:
    """The thread's side of a prefetch: it makes the batches of a source ahead."""

    def __init__(self, source: Iterable[Any], settings: Settings) -> None:
        self.source = source
        self.settings = settings
        self.ring = settings.ring()
        self.wake = Signal()
        self.wanted: ThreadEpoch | None = None
        self.stopping = False

    def stop(self) -> None:
        """Tell the thread to end, without waiting."""
        self.stopping = True
        epoch = self.wanted
        if epoch is not None:
            epoch.cancel()
        self.wake.set()

    def run(self) -> None:
        """Serve one epoch after the other, until it is to stop."""
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
            del self.source

    def _serve(self, epoch: ThreadEpoch) -> None:
        """Make the batches of an epoch, and give its end or its error at the last."""
        iterator = None
        outcome = END
        epoch.producer = threading.get_ident()
        try:
            iterator = iter(self.source)
            while (slot := self._wait(epoch)) is not None:
                epoch.put(Outcome(make_batch(slot, iterator, self.settings, self.ring)))
        except StopIteration:
            pass
        except BaseException as error:
            outcome = Outcome(error=error)
        try:
            if iterator is not self.source:
                close_iterator(iterator)
        except BaseException as error:
            if not epoch.cancelled and outcome.error is None:
                outcome = Outcome(error=error)
            else:
                report(epoch, error)
        epoch.put(outcome)
        # An error's traceback has this frame: together they would be a cycle.
        del outcome

    def _wait(self, epoch: ThreadEpoch) -> Slot | None:
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


def report(epoch: ThreadEpoch, error: BaseException) -> None:
    """Hand on an error of the source's end, for which no consumer waits."""
    if epoch.closing:
        epoch.failure = error
        return
    threading.excepthook(
        threading.ExceptHookArgs(
            (type(error), error, error.__traceback__, threading.current_thread())
        )
    )


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
    if (close := getattr(iterator, "close", None)) is not None:
        close()


def waits_for_itself() -> RuntimeError:
    """Return the error of a source that asks the prefetch that it serves."""
    return RuntimeError(
        "the source of a prefetch asks that prefetch for a batch: it would wait for "
        "itself. Let it take from what the prefetch was made of"
    )


# ---- For the consumer ----------------------------------------------------------------


class Maker:
    """Makes the batches of a prefetch, one epoch after the other."""

    # Whether batches are made before they are asked for.
    ahead = True

    def __init__(self, source: Any, settings: Settings, context: Context) -> None:
        self.source = source
        self.settings = settings
        self.context = context
        self.ring = settings.ring()
        self.thread: threading.Thread | None = None
        self.wanted: Any = None
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

    def start(self) -> Any:
        """Begin an epoch; the one before ends."""
        if self.closed:
            raise RuntimeError("this prefetch is closed; make a new one")
        made = self.new_epoch()
        self.epochs += 1
        before, self.wanted = self.wanted, made
        if before is not None:
            before.superseded = True
            self.let_go(before)
        return made

    def new_epoch(self) -> Any:
        """Return an epoch that nobody serves yet."""
        return Epoch()

    def let_go(self, epoch: Any) -> None:
        """End an epoch without waiting for its producer."""
        epoch.cancel()

    def check_caller(self) -> None:
        """Raise where no batch can be taken."""

    def wait_for_end(self, epoch: Any) -> None:
        """Wait until the source is closed, which it is if nothing runs ahead."""

    def close(self) -> None:
        """Take no more batches, and let go of the ring."""
        self.closed = True
        self.ring.drop()

    def stats(self) -> dict[str, int]:
        """Return the counters of the ring and the epochs."""
        return self.ring.stats() | {
            "ready": 0 if self.wanted is None else len(self.wanted.ready),
            "source_waits": self.waits,
            "epochs": self.epochs,
        }

    def describe(self) -> str:
        """Return the state, in words."""
        if self.closed:
            return "closed"
        if not self.ahead:
            return "not ahead"
        if self.wanted is None:
            return "not started"
        stats = self.stats()
        return f"{stats['ready']} ready, {stats['slots']} slots"


class ThreadMaker(Maker):
    """Makes batches by a thread, which ends with the last of those that use this."""

    team: Team | None = None

    def new_epoch(self) -> ThreadEpoch:
        """Return an epoch of the thread: a new one if there is none in this process."""
        if self.team is None or self.producer.stopping or not self.team.is_here:
            self.producer = Producer(self.source, self.settings)
            self.ring = self.producer.ring
            self.team = Team(
                [self.producer.run],
                self.producer.stop,
                name="ndx-prefetch",
                computing=False,
                # A copy: in a forked child, a thread of the parent may be inside of it.
                context=self.context,
                grace=CLOSE_TIMEOUT,
            )
        return ThreadEpoch(self.producer.wake)

    def start(self) -> ThreadEpoch:
        """Begin an epoch, and tell the thread."""
        self.producer.wanted = made = super().start()
        made.wake.set()
        return made

    def receive(self, epoch: ThreadEpoch) -> Outcome:
        """Return the next outcome; wait until there is one."""
        self.check_caller()
        assert self.team is not None
        self.waits += 1
        epoch.consumer = threading.get_ident()
        try:
            while True:
                try:
                    return epoch.ready.popleft()
                except IndexError:
                    pass
                if epoch.cancelled:
                    return END
                epoch.wake.set()
                came = epoch.arrived.wait(_LOOK_AFTER)
                if not (came or epoch.ready or self.team.is_alive):
                    raise RuntimeError(
                        "the thread which makes the batches of this prefetch has "
                        "ended; make a new prefetch"
                    )
        finally:
            epoch.consumer = None
            epoch.wake.set()

    def check_caller(self) -> None:
        """Raise in a forked child, where the thread is not, and in that thread."""
        assert self.team is not None
        if self.team.is_member:
            raise waits_for_itself()
        if not self.team.is_here:
            raise RuntimeError(
                "this iteration of a prefetch belongs to the process that was forked, "
                "where its thread is; start a new one here"
            )

    def wait_for_end(self, epoch: ThreadEpoch) -> None:
        """Wait until the producer has let go of the source."""
        if self.team is None or self.team.is_member or not self.team.is_here:
            return
        if not epoch.finished.wait(CLOSE_TIMEOUT):
            warn_of_slow_source()
        epoch.raise_failure()

    def close(self) -> None:
        """End the thread, and wait for it."""
        self.closed = True
        if self.team is None or not self.team.is_here:
            return
        if not self.team.close():
            warn_of_slow_source()
        if self.wanted is not None:
            self.wanted.raise_failure()


def warn_of_slow_source() -> None:
    """Warn that the source is still in the step that closing has waited for."""
    warnings.warn(
        f"the source of a prefetch is still in its step after {CLOSE_TIMEOUT:g} s; "
        "its thread ends when the step does",
        ResourceWarning,
        stacklevel=4,
    )


class DirectMaker(Maker):
    """Makes each batch when it is asked for, in the consumer's thread."""

    ahead = False

    def receive(self, epoch: Epoch) -> Outcome:
        """Make a batch."""
        if epoch.cancelled:
            return END
        self.prepare()
        try:
            made = Outcome(self.context.run(self._make, epoch))
        except StopIteration:
            return END
        self.waits += 1
        return made

    def _make(self, epoch: Epoch) -> Any:
        if epoch.iterator is None:
            epoch.iterator = iter(self.source)
        me = threading.get_ident()
        wait = SlotWait(self.ring, lambda: me, is_alone_with)
        while (slot := wait.attempt()) is None:
            time.sleep(wait.delay)
        return make_batch(slot, epoch.iterator, self.settings, self.ring)

    def let_go(self, epoch: Epoch) -> None:
        """Close the source's iterator, if it was made for this epoch."""
        epoch.cancel()
        iterator, epoch.iterator = epoch.iterator, None
        if close_iterator is None:
            return  # the interpreter has emptied this module, at its end
        if iterator is not None and iterator is not self.source:
            # A finalizer may call this while the source runs in the context itself.
            self.context.copy().run(close_iterator, iterator)


class Prefetching(Generic[T]):
    """What `ndx.prefetch` returns, with a thread or with tasks; see the subclasses."""

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    def __init__(self, source: Any, maker: Any) -> None:
        # With its mark, which another prefetch looks for.
        self.source = source
        offer_length(self)
        self._maker = maker
        self._once: Any = None
        self._last: weakref.ref[Any] | None = None

    def _iteration(self, kind: type[I], of_once: type) -> I:
        """Begin an epoch; of a source that is an iterator, there is one."""
        if self._once is not None:
            return self._once  # type: ignore[no-any-return]
        made = kind(self._maker)
        if isinstance(self._maker.source, of_once):
            self._once = made
        self._last = weakref.ref(made)
        return made

    def stats(self) -> dict[str, int]:
        """Return what the prefetch has counted, in all epochs.

        Returns
        -------
        dict
            ``batches`` that were made; ``ready`` ones, which wait to be taken;
            ``slots`` of the ring, ``leased_slots`` (of batches that are ready or still
            referenced), ``slot_bytes`` (the size that slots should have), ``bytes`` of
            all slots, ``size_changes``; ``spilled_batches`` that did not fit in their
            slots, and ``spilled_bytes``; ``slot_waits`` (how often all slots were
            leased), ``grown`` (slots added because of that); ``source_waits`` (how
            often the consumer waited), ``epochs``.
        """
        return self._maker.stats()  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        maker = self._maker
        return (
            f"<ndx.prefetch of {type(maker.source).__name__}, depth "
            f"{maker.settings.depth}: {maker.describe()}>"
        )


class Iteration(Generic[T]):
    """One epoch of a prefetch, for its consumer."""

    def __init__(self, maker: Any) -> None:
        # Whether it has come to its end, or was closed.
        self._over = False
        self._maker = maker
        self._epoch = maker.start()
        wanted = maker.settings.progress
        self._bar = progress_bar(wanted, length_of(maker.source), "batch")

    def _raise_end(self, outcome: Outcome, end: type[Exception]) -> NoReturn:
        """Want no more, and raise the error of the source, or what ends a loop."""
        superseded = self._epoch.superseded and not self._over
        self._end()
        try:
            if outcome.error is not None:
                raise outcome.error
        finally:
            # The error's traceback has this frame: they would be a cycle. And whoever
            # keeps the error must not keep the producer: without the GIL that is Python
            # itself, until the thread that made the error runs again.
            del outcome, self
        if superseded:
            raise RuntimeError(
                "this iteration of a prefetch has ended, because a newer one has begun "
                "(there is one at a time); make a prefetch for each"
            )
        raise end

    def _end(self) -> None:
        """Want no more, without waiting."""
        self._over = True
        self._maker.let_go(self._epoch)
        self._bar.close()

    def __del__(self) -> None:
        # Without a bar, a thread could not be started.
        if hasattr(self, "_bar"):
            self._end()

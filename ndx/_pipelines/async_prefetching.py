"""Batches of asynchronous iterables, made ahead by a task of the same event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ndx._pipelines.leases import Slot, SlotWait, scope_left_open
from ndx._pipelines.producing import END, Maker, Outcome, waits_for_itself
from ndx._pipelines.sources import (
    is_marked,
    length_of,
    offer_length,
    progress_bar,
    unmarked,
)

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from ndx._pipelines.prefetching import Settings

__all__ = ["AsyncPrefetch"]

T = TypeVar("T")


class AsyncPrefetch(Generic[T]):
    """Batches of an asynchronous source, made ahead; made by `ndx.prefetch`.

    An asynchronous iterable. Each ``async for`` starts an epoch, with a task of its
    own, and ends the one before. If the source is an iterator itself (an asynchronous
    generator, say), there is only one epoch, and each ``async for`` goes on with it.
    It has a length if its source has one.
    """

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    def __init__(
        self,
        source: AsyncIterable[T],
        settings: Settings,
        context: contextvars.Context,
    ) -> None:
        # With its mark, which another prefetch looks for.
        self.source = source
        offer_length(self)
        self._inner = unmarked(source)
        self._maker = AsyncMaker(self._inner, settings, context)
        self._maker.ahead = not is_marked(source)
        self._once: AsyncPrefetchIterator[T] | None = None
        self._last: weakref.ref[AsyncPrefetchIterator[T]] | None = None

    def __aiter__(self) -> AsyncPrefetchIterator[T]:
        if self._once is not None:
            return self._once
        last = None if self._last is None else self._last()
        if last is not None:
            last._epoch.superseded = True
            last._let_go()
        made: AsyncPrefetchIterator[T] = AsyncPrefetchIterator(self._maker)
        if isinstance(self._inner, AsyncIterator):
            self._once = made
        self._last = weakref.ref(made)
        return made

    async def aclose(self) -> None:
        """End the epoch, if there is one; wait until the source is closed.

        To iterate raises an error then. Batches that were taken stay valid.
        """
        self._maker.closed = True
        last = None if self._last is None else self._last()
        if last is not None:
            await last.aclose()
        self._maker.ring.drop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def stats(self) -> dict[str, int]:
        """Return what the prefetch has counted; see `Prefetch.stats`."""
        last = None if self._last is None else self._last()
        return self._maker.ring.stats() | {
            "ready": 0 if last is None else len(last._epoch.ready),
            "source_waits": self._maker.waits,
            "epochs": self._maker.epochs,
        }

    def __repr__(self) -> str:
        state = "closed" if self._maker.closed else f"{self.stats()['ready']} ready"
        return (
            f"<ndx.prefetch of {type(self._inner).__name__}, depth "
            f"{self._maker.settings.depth}: {state}>"
        )


class AsyncEpoch:
    """What the task and the consumer of one pass share; it refers to neither."""

    def __init__(self) -> None:
        self.ready: deque[Outcome] = deque()
        self.changed = asyncio.Event()
        self.consumers = 0
        self.iterator: AsyncIterator[Any] | None = None
        self.cancelled = False
        self.superseded = False

    def put(self, outcome: Outcome) -> None:
        """Hand an item to the consumer."""
        self.ready.append(outcome)
        self.changed.set()

    def waiting_consumer(self) -> AsyncEpoch | None:
        """Return what waits for an item, if there is nothing for it."""
        return self if self.consumers and not self.ready else None

    async def change(self) -> None:
        """Wait until the other side has done something."""
        self.changed.clear()
        await self.changed.wait()


class AsyncMaker(Maker):
    """Makes batches, in a ring that the epochs share."""

    ahead = True

    async def make(self, epoch: AsyncEpoch, slot: Slot) -> Any:
        """Return the source's next batch, made in a slot."""
        if epoch.iterator is None:
            epoch.iterator = aiter(self.source)
        with self.settings.filling(self.ring, slot) as filling:
            batch = await anext(epoch.iterator)
            if filling.is_covered():
                # This ends the source, and so the scope that it is in.
                await aclose_iterator(epoch.iterator)
                raise scope_left_open()
            return filling.take_over(batch)

    async def slot(self, epoch: AsyncEpoch) -> Slot:
        """Wait for a slot."""
        wait = SlotWait(self.ring, epoch.waiting_consumer, is_alone)
        while (slot := wait.attempt()) is None:
            await asyncio.sleep(wait.delay)
        return slot

    async def produce(self, epoch: AsyncEpoch) -> None:
        """Make the batches of an epoch, and give its end or its error at the last."""
        outcome = END
        try:
            while True:
                while len(epoch.ready) >= self.settings.depth:
                    await epoch.change()
                slot = await self.slot(epoch)
                epoch.put(Outcome(await self.make(epoch, slot)))
        except StopAsyncIteration:
            pass
        except GeneratorExit:
            # The loop was closed without an end of its tasks: nothing can be awaited.
            epoch.iterator = None
            raise
        except BaseException as error:
            if is_cancelled():
                raise
            outcome = Outcome(error=error)
        finally:
            await self.let_go(epoch)
        epoch.put(outcome)
        # An error's traceback has this frame: together they would be a cycle.
        del outcome

    async def let_go(self, epoch: AsyncEpoch) -> None:
        """Close the source's iterator, if it was made for this epoch."""
        iterator, epoch.iterator = epoch.iterator, None
        if iterator is not None and iterator is not self.source:
            await aclose_iterator(iterator)

    async def make_directly(self, epoch: AsyncEpoch) -> Outcome:
        """Make a batch in the consumer's task."""
        try:
            return Outcome(await self.make(epoch, await self.slot(epoch)))
        except StopAsyncIteration:
            return END


class AsyncPrefetchIterator(Generic[T]):
    """One epoch of an `AsyncPrefetch`."""

    def __init__(self, maker: AsyncMaker) -> None:
        maker.check_open()
        self._maker = maker
        self._epoch = AsyncEpoch()
        self._task: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bar = progress_bar(
            maker.settings.progress, length_of(maker.source), "batch"
        )
        maker.epochs += 1

    def __aiter__(self) -> AsyncPrefetchIterator[T]:
        return self

    async def __anext__(self) -> T:
        epoch = self._epoch
        if epoch.cancelled:
            raise StopAsyncIteration
        epoch.consumers += 1
        try:
            outcome = END if epoch.superseded else await self._receive()
        finally:
            epoch.consumers -= 1
        if outcome.error is None and not outcome.is_last:
            self._bar.update()
            return outcome.batch  # type: ignore[no-any-return]
        superseded = epoch.superseded and not epoch.cancelled
        self._end()
        try:
            if outcome.error is not None:
                raise outcome.error
        finally:
            # The error's traceback has this frame: they would be a cycle.
            del outcome
        if superseded:
            raise RuntimeError(
                "this iteration of a prefetch has ended, because a newer one has begun "
                "(there is one at a time); make a prefetch for each"
            )
        raise StopAsyncIteration

    async def _receive(self) -> Outcome:
        """Return the next outcome."""
        epoch = self._epoch
        if not self._maker.ahead:
            self._maker.prepare()
            return await self._maker.make_directly(epoch)
        self._start()
        assert self._task is not None
        if asyncio.current_task() is self._task:
            raise waits_for_itself()
        self._maker.waits += not epoch.ready
        while not epoch.ready:
            if epoch.cancelled or epoch.superseded:
                return END
            if self._task.done():
                raise RuntimeError(
                    "the task that makes the batches of this prefetch was cancelled"
                )
            await epoch.change()
        epoch.changed.set()
        return epoch.ready.popleft()

    def _start(self) -> None:
        """Start the task, when the first batch is asked for."""
        loop = asyncio.get_running_loop()
        if self._task is not None:
            if self._loop is not loop:
                raise RuntimeError(
                    "this iteration of a prefetch belongs to another event loop"
                )
            return
        self._maker.prepare()
        self._loop = loop
        self._task = loop.create_task(
            self._maker.produce(self._epoch),
            name="ndx-prefetch",
            context=self._maker.context.copy(),
        )
        # Also where it is cancelled before it runs.
        changed = self._epoch.changed
        self._task.add_done_callback(lambda task: changed.set())

    def _let_go(self) -> None:
        """Want no more, without waiting; in any thread."""
        self._epoch.ready.clear()
        self._bar.close()
        task, loop = self._task, self._loop
        if task is None or loop is None or task.done():
            return
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)

    def _end(self) -> None:
        self._epoch.cancelled = True
        self._let_go()

    async def aclose(self) -> None:
        """End the epoch; wait until the source is closed."""
        self._end()
        if self._task is None:
            await self._maker.let_go(self._epoch)
        elif self._task is not asyncio.current_task():
            await asyncio.wait([self._task])
            if not self._task.cancelled() and self._task.exception() is not None:
                # The source's own, of its end.
                self._task.result()

    def __del__(self) -> None:
        if hasattr(self, "_bar"):
            self._end()


async def aclose_iterator(iterator: Any) -> None:
    """Close an asynchronous generator, or what has an `aclose` as it has one."""
    aclose = getattr(iterator, "aclose", None)
    if aclose is not None:
        await aclose()


def is_cancelled() -> bool:
    """Whether the running task is to end; no frame keeps the task, which has it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_alone(consumer: object) -> bool:
    """Whether no task is left that could release a batch, nor any thread."""
    others = asyncio.all_tasks()
    return len(others) <= 2 and threading.active_count() == 1

"""Batches of asynchronous iterables, made ahead by a task of the same event loop."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, TypeVar

from ndx._pipelines.leases import SlotWait, scope_left_open
from ndx._pipelines.producing import (
    END,
    Epoch,
    Iteration,
    Maker,
    Outcome,
    Prefetching,
    waits_for_itself,
)

if TYPE_CHECKING:
    from typing import Self

    from ndx._pipelines.prefetching import Settings

__all__ = ["AsyncMaker", "AsyncPrefetch"]

T = TypeVar("T")


class AsyncPrefetch(Prefetching[T]):
    """Batches of an asynchronous source, made ahead; made by `ndx.prefetch`.

    An asynchronous iterable. Each ``async for`` starts an epoch, with a task of its
    own, and ends the one before. If the source is an iterator itself (an asynchronous
    generator, say), there is only one epoch, and each ``async for`` goes on with it.
    It has a length if its source has one.
    """

    def __aiter__(self) -> AsyncPrefetchIterator[T]:
        return self._iteration(AsyncPrefetchIterator, AsyncIterator)

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

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class AsyncEpoch(Epoch):
    """What the task and the consumer of one pass share."""

    # How many tasks wait for an item.
    consumers = 0
    # What makes the items, from when the first is asked for to its end.
    task: asyncio.Task[None] | None = None
    # Where the task is, or was.
    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

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

    def cancel(self) -> None:
        super().cancel()
        task, loop = self.task, self.loop
        if task is not None and loop is not None and not loop.is_closed():
            # In any thread: a finalizer may call this.
            loop.call_soon_threadsafe(task.cancel)

    def forget(self, task: asyncio.Task[None]) -> None:
        """Let go of the task that has ended: its error may lead here, by a frame."""
        self.task = None
        self.changed.set()


class AsyncMaker(Maker):
    """Makes batches by a task of each epoch, in a ring that the epochs share."""

    def __init__(
        self, source: Any, settings: Settings, context: contextvars.Context, ahead: bool
    ) -> None:
        super().__init__(source, settings, context)
        self.ahead = ahead

    def new_epoch(self) -> AsyncEpoch:
        return AsyncEpoch()

    async def make(self, epoch: AsyncEpoch) -> Outcome:
        """Return the source's next batch, made in a slot; raise at its end."""
        wait = SlotWait(self.ring, epoch.waiting_consumer, is_alone)
        while (slot := wait.attempt()) is None:
            await asyncio.sleep(wait.delay)
        if epoch.iterator is None:
            epoch.iterator = aiter(self.source)
        with self.settings.filling(self.ring, slot) as filling:
            batch = await anext(epoch.iterator)
            if filling.is_covered():
                # This ends the source, and so the scope that it is in.
                await aclose_iterator(epoch.iterator)
                raise scope_left_open()
            return Outcome(filling.take_over(batch))

    async def produce(self, epoch: AsyncEpoch) -> None:
        """Make the batches of an epoch, and give its end or its error at the last."""
        outcome = END
        try:
            while True:
                while len(epoch.ready) >= self.settings.depth:
                    await epoch.change()
                epoch.put(await self.make(epoch))
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
            await self.aclose(epoch)
        epoch.put(outcome)
        # An error's traceback has this frame: together they would be a cycle.
        del outcome

    async def aclose(self, epoch: AsyncEpoch) -> None:
        """Close the source's iterator, if it was made for this epoch."""
        iterator, epoch.iterator = epoch.iterator, None
        if iterator is not None and iterator is not self.source:
            await aclose_iterator(iterator)

    async def receive(self, epoch: AsyncEpoch) -> Outcome:
        """Return the next outcome."""
        if not self.ahead:
            self.prepare()
            try:
                return await self.make(epoch)
            except StopAsyncIteration:
                return END
            except Exception as error:
                # It ends the epoch, as where a task makes the batches.
                await self.aclose(epoch)
                return Outcome(error=error)
        self._start(epoch)
        if asyncio.current_task() is epoch.task:
            raise waits_for_itself()
        self.waits += not epoch.ready
        while not epoch.ready:
            if epoch.cancelled:
                return END
            if epoch.task is None:
                raise RuntimeError(
                    "the task that makes the batches of this prefetch was cancelled"
                )
            await epoch.change()
        epoch.changed.set()
        return epoch.ready.popleft()

    def _start(self, epoch: AsyncEpoch) -> None:
        """Start the task, when the first batch is asked for."""
        loop = asyncio.get_running_loop()
        if epoch.loop is None:
            self.prepare()
            epoch.loop = loop
            epoch.task = loop.create_task(
                self.produce(epoch), name="ndx-prefetch", context=self.context.copy()
            )
            # Also where it is cancelled before it runs.
            epoch.task.add_done_callback(epoch.forget)
        if epoch.loop is not loop:
            raise RuntimeError(
                "this iteration of a prefetch belongs to another event loop"
            )


class AsyncPrefetchIterator(Iteration[T]):
    """One epoch of an `AsyncPrefetch`."""

    def __aiter__(self) -> AsyncPrefetchIterator[T]:
        return self

    async def __anext__(self) -> T:
        epoch = self._epoch
        if self._over:
            raise StopAsyncIteration
        epoch.consumers += 1
        try:
            outcome = END if epoch.cancelled else await self._maker.receive(epoch)
        finally:
            epoch.consumers -= 1
        if outcome.error is not None or outcome.is_last:
            try:
                self._raise_end(outcome, StopAsyncIteration)
            finally:
                # As in `_raise_end`.
                del outcome, self
        self._bar.update()
        return outcome.batch  # type: ignore[no-any-return]

    async def aclose(self) -> None:
        """End the epoch; wait until the source is closed."""
        task = self._epoch.task
        self._end()
        if task is None:
            await self._maker.aclose(self._epoch)
        elif task is not asyncio.current_task():
            await asyncio.wait([task])
            if not task.cancelled():
                # An error of the source's end.
                task.result()


async def aclose_iterator(iterator: Any) -> None:
    """Close an asynchronous generator, or what has an `aclose` as it has one."""
    if (aclose := getattr(iterator, "aclose", None)) is not None:
        await aclose()


def is_cancelled() -> bool:
    """Whether the running task is to end; no frame keeps the task, which has it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_alone(consumer: object) -> bool:
    """Whether no task is left that could release a batch, nor any thread."""
    others = asyncio.all_tasks()
    return len(others) <= 2 and threading.active_count() == 1

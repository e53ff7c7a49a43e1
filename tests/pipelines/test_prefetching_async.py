"""Prefetching of asynchronous iterables, by a task of the same event loop."""

import asyncio
import gc
import threading

import pytest
from helpers.prefetching import check, item, live_bytes, no_thread_left  # noqa: F401

import ndx

pytestmark = pytest.mark.threads


class Numbers:
    """An asynchronous source that can be iterated again."""

    def __init__(self, number):
        self.number = number
        self.made = self.started = self.closed = 0

    def __len__(self):
        return self.number

    async def __aiter__(self):
        self.started += 1
        try:
            for i in range(self.number):
                await asyncio.sleep(0)
                self.made += 1
                yield item(i)
        finally:
            self.closed += 1


def in_loop(test):
    """Run a test in an event loop, where no task is left behind."""

    async def main():
        await asyncio.wait_for(test(), 60)
        for _ in range(5):
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    def wrapper():
        asyncio.run(main())

    wrapper.__name__ = test.__name__
    wrapper.__doc__ = test.__doc__
    return wrapper


@in_loop
async def test_batches_come_ahead_and_in_order():
    source = Numbers(30)
    batches = ndx.prefetch(source, depth=4)
    assert len(batches) == 30
    iterator = aiter(batches)
    check(await anext(iterator), 0)
    for _ in range(50):
        await asyncio.sleep(0)
    assert source.made == 5
    i = 0
    async for batch in iterator:
        i += 1
        check(batch, i)
    assert i == 29
    assert threading.active_count() == 1 or not [
        t for t in threading.enumerate() if "prefetch" in t.name
    ]


@in_loop
async def test_another_task_may_release_batches():
    kept = []

    async def release():
        while True:
            await asyncio.sleep(0.001)
            del kept[:1]

    task = asyncio.create_task(release())
    i = -1
    async for batch in ndx.prefetch(Numbers(30), depth=1, slots=3, slot_size="8KiB"):
        i += 1
        check(batch, i)
        kept.append(batch)
    assert i == 29
    task.cancel()
    await asyncio.wait([task])


@in_loop
async def test_leaving_early():
    source = Numbers(50)
    before = live_bytes()
    batches = ndx.prefetch(source, depth=4)
    for stop in (0, 3):
        async for batch in batches:
            if batch["i"] == stop:
                break
        del batch
        for _ in range(5):
            await asyncio.sleep(0)
        assert source.closed == source.started
    iterator = aiter(batches)
    check(await anext(iterator), 0)
    await iterator.aclose()
    assert source.closed == source.started == 3
    await iterator.aclose()
    assert await anext(iterator, "end") == "end"
    await batches.aclose()
    del batches, iterator
    # What the loop has yet to run refers to the task.
    await asyncio.sleep(0)
    assert live_bytes() == before


@in_loop
async def test_a_consumer_that_is_cancelled_loses_nothing():
    """`asyncio.wait_for` around a batch may be tried again."""
    go_on = asyncio.Event()

    async def source():
        yield item(0)
        await go_on.wait()
        yield item(1)

    iterator = aiter(ndx.prefetch(source()))
    check(await anext(iterator), 0)
    for _ in range(3):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(iterator), 0.001)
    go_on.set()
    check(await anext(iterator), 1)
    with pytest.raises(StopAsyncIteration):
        await anext(iterator)


@in_loop
async def test_a_producer_that_is_cancelled_by_others():
    async def source():
        yield item(0)
        await asyncio.sleep(1000)

    iterator = aiter(ndx.prefetch(source()))
    check(await anext(iterator), 0)
    (producer,) = [t for t in asyncio.all_tasks() if t.get_name() == "ndx-prefetch"]
    producer.cancel()
    with pytest.raises(RuntimeError, match="was cancelled"):
        await anext(iterator)


@in_loop
async def test_a_marked_source_has_no_task():
    async def source():
        for i in range(5):
            yield {**item(i), "task": asyncio.current_task()}

    i = -1
    async for batch in ndx.prefetch(ndx.no_prefetch(source())):
        i += 1
        assert batch.pop("task") is asyncio.current_task()
        check(batch, i)
    assert i == 4


@in_loop
async def test_concurrent_epochs_of_several_prefetches():
    async def consume(number):
        i = -1
        async for batch in ndx.prefetch(Numbers(number), depth=2):
            i += 1
            with ndx.workspace("step"):
                total = ndx.sum(batch["x"] + batch["y"])
                await asyncio.sleep(0)
                assert float(total) == 200 * i
        return i

    numbers = [10, 20, 15, 1]
    found = await asyncio.gather(*map(consume, numbers))
    assert found == [number - 1 for number in numbers]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_loops_that_end():
    """Each loop, in whatever thread, begins an epoch; one that ended needs no care."""
    source = Numbers(20)
    batches = ndx.prefetch(source, depth=3)

    async def some(stop):
        async for batch in batches:
            check(batch, batch["i"])
            if batch["i"] == stop:
                return batch
        return None

    kept = [asyncio.run(some(stop)) for stop in (3, 5)]
    thread = threading.Thread(target=lambda: kept.append(asyncio.run(some(7))))
    thread.start()
    thread.join(30)
    assert [batch["i"] for batch in kept] == [3, 5, 7]
    for batch in kept:
        check(batch, batch["i"])

    async def abandon():
        iterator = aiter(batches)
        check(await anext(iterator), 0)
        return iterator

    loop = asyncio.new_event_loop()
    iterator = loop.run_until_complete(abandon())

    async def exhaust(iterator):
        async for batch in iterator:
            check(batch, batch["i"])

    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(exhaust(iterator))
    loop.run_until_complete(asyncio.sleep(0))
    loop.run_until_complete(iterator.aclose())
    loop.close()
    del iterator
    gc.collect()


@in_loop
async def test_a_source_that_asks_its_own_prefetch():
    async def source():
        yield 1
        yield await anext(iterator)

    async with ndx.prefetch(source()) as batches:
        iterator = aiter(batches)
        assert await anext(iterator) == 1
        with pytest.raises(RuntimeError, match="would wait for itself"):
            await anext(iterator)

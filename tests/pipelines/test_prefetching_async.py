"""Prefetching of asynchronous iterables, by a task of the same event loop."""

import asyncio
import gc
import threading

import numpy as np
import pytest
from helpers.examples import examples
from helpers.prefetching import check, item, live_bytes, no_thread_left  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

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
async def test_epochs_share_a_ring():
    source = Numbers(12)
    async with ndx.prefetch(source, depth=3) as batches:
        for epoch in range(4):
            i = -1
            async for batch in batches:
                i += 1
                check(batch, i)
            assert i == 11
            if epoch == 0:
                first = ndx.memory.stats("host")["system_allocations"]
        assert ndx.memory.stats("host")["system_allocations"] == first
        stats = batches.stats()
        assert (stats["epochs"], stats["batches"]) == (4, 48)
        assert stats["slots"] <= 6
    assert source.closed == 4
    assert "closed" in repr(batches)
    with pytest.raises(RuntimeError, match="closed"):
        aiter(batches)


@in_loop
async def test_kept_batches_stay_valid():
    kept = []
    async for batch in ndx.prefetch(Numbers(40), depth=2, on_held="grow"):
        kept.append(batch)
    for i, batch in enumerate(kept):
        check(batch, i)


@in_loop
async def test_who_keeps_all_batches_gets_an_error():
    kept = []

    async def keep_all():
        async for batch in ndx.prefetch(Numbers(40), depth=2, patience=0.02):
            kept.append(batch)

    with pytest.raises(ndx.WorkspaceError, match="slots of the prefetch's ring"):
        await keep_all()
    for i, batch in enumerate(kept):
        check(batch, i)


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
async def test_errors_come_where_they_belong():
    async def source():
        yield item(0)
        await asyncio.sleep(0)
        raise KeyError("lost")

    for mark in (lambda it: it, ndx.no_prefetch):
        iterator = aiter(ndx.prefetch(mark(source())))
        check(await anext(iterator), 0)
        with pytest.raises(KeyError, match="lost"):
            await anext(iterator)
        with pytest.raises(StopAsyncIteration):
            await anext(iterator)


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
async def test_an_iterator_has_one_epoch_and_a_newer_one_ends_the_older():
    batches = ndx.prefetch((item(i) async for i in arange(10)), depth=2)
    i = -1
    async for batch in batches:
        i += 1
        check(batch, i)
        if i == 4:
            break
    async for batch in batches:
        i += 1
        check(batch, i)
    assert i == 9
    batches = ndx.prefetch(Numbers(5))
    old = aiter(batches)
    check(await anext(old), 0)
    new = aiter(batches)
    check(await anext(new), 0)
    with pytest.raises(RuntimeError, match="a newer one has begun"):
        await anext(old)
    with pytest.raises(StopAsyncIteration):
        await anext(old)
    check(await anext(new), 1)
    await batches.aclose()


async def arange(number):
    for i in range(number):
        await asyncio.sleep(0)
        yield i


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
async def test_scopes_and_backends():
    async def source(scope):
        with scope():
            yield ndx.ones(3)

    with pytest.raises(ndx.WorkspaceError, match="left open"):
        await anext(aiter(ndx.prefetch(source(ndx.no_workspace))))
    with ndx.use("host", limit="1MiB") as small:
        batches = ndx.prefetch(source(lambda: ndx.use("host")), workspace=None)
        plain = ndx.prefetch(Numbers(2))
    with ndx.workspace("consumer"):
        async for batch in plain:
            assert batch["y"].backend is small
            assert batch["y"].workspace is None
        async for batch in batches:
            assert batch.tolist() == [1.0] * 3


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


STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0, 10, 500]), st.booleans()),
    max_size=10,
)
ACTIONS = st.lists(
    st.sampled_from(
        ["next"] * 6 + ["keep", "keep", "drop", "drop all", "pause", "begin", "cancel"]
    ),
    max_size=20,
)


@examples(100)
@given(
    STEPS,
    st.integers(0, 12),
    ACTIONS,
    st.integers(1, 3),
    st.sampled_from(["wait", "grow"]),
    st.booleans(),
)
def test_random_schedules(steps, broken, actions, depth, on_held, closes):
    """Whatever comes in turn: batches are right, errors in place, no task is left."""
    before = live_bytes()

    class Source:
        async def __aiter__(self):
            for i, (pauses, size, makes) in enumerate(steps):
                for _ in range(pauses):
                    await asyncio.sleep(0)
                if i == broken:
                    raise ZeroDivisionError
                yield item(i, size) if makes else {"i": i}

    def look(batch, i):
        assert batch["i"] == i
        for name in batch.keys() - {"i"}:
            assert (np.asarray(batch[name]) == i).all()

    async def take(iterator, number):
        """Return a batch, or None at the end."""
        try:
            batch = await anext(iterator)
        except StopAsyncIteration:
            assert number == len(steps)
        except ZeroDivisionError:
            assert number == broken
        except ndx.WorkspaceError:
            assert on_held == "wait"
        else:
            look(batch, number)
            return batch
        return None

    async def main():
        batches = ndx.prefetch(Source(), depth, on_held=on_held, patience=0)
        iterator, number, held = aiter(batches), 0, []
        for action in actions:
            if action == "pause":
                await asyncio.sleep(0)
            elif action == "begin":
                iterator, number = aiter(batches), 0
            elif action == "cancel":
                task = asyncio.ensure_future(take(iterator, number))
                await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                if not task.cancelled():
                    # It was there already.
                    ended = task.result() is None
                    iterator = aiter(batches) if ended else iterator
                    number = 0 if ended else number + 1
                del task
            elif action.startswith("drop"):
                del held[: None if action == "drop all" else 1]
            else:
                batch = await take(iterator, number)
                if batch is None:
                    assert await anext(iterator, None) is None
                    iterator, number = aiter(batches), 0
                    continue
                if action == "keep":
                    held.append((number, batch))
                del batch
                number += 1
            for i, kept in held:
                look(kept, i)
        if closes:
            await batches.aclose()
        del batches, iterator
        for _ in range(10):
            await asyncio.sleep(0)
        assert "ndx-prefetch" not in {t.get_name() for t in asyncio.all_tasks()}
        for i, kept in held:
            look(kept, i)

    asyncio.run(asyncio.wait_for(main(), 60))
    if live_bytes() != before:
        gc.collect()
    assert live_bytes() == before


def test_numpys_arrays_of_an_asynchronous_source():
    async def source():
        yield np.arange(3), "text"

    async def main():
        return [batch async for batch in ndx.prefetch(source())]

    ((x, text),) = asyncio.run(main())
    assert isinstance(x, ndx.NDArray)
    assert (x.tolist(), text) == ([0, 1, 2], "text")


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

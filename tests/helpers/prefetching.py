"""What tests of prefetching share: sources, and the end of their threads."""

import asyncio
import gc
import threading
from collections.abc import Iterator

import numpy as np
import pytest

import ndx
from helpers.threads import wait_until

# Seconds until a test says that something hangs.
LIMIT = 30.0


def threads():
    """Return the producers' threads that run."""
    return [t for t in threading.enumerate() if t.name.startswith("ndx-prefetch")]


def threads_end():
    """Wait until no producer runs; fail if one goes on."""
    return wait_until(lambda: not threads())


@pytest.fixture(autouse=True)
def no_thread_left():
    """Fail if a test leaves a producer's thread behind."""
    yield
    end_loops()
    if threads():
        # A traceback that the test has looked at is in a cycle.
        gc.collect()
    threads_end()


class Numbers:
    """A source that can be iterated again: item i is a dict of arrays full of i."""

    def __init__(self, number, size=100):
        self.number, self.size = number, size
        self.started = self.closed = self.made = 0

    def __len__(self):
        return self.number

    def __iter__(self):
        self.started += 1
        try:
            for i in range(self.number):
                self.made += 1
                yield item(i, self.size)
        finally:
            self.closed += 1


def item(i, size=100):
    return {"x": np.full(size, float(i)), "y": ndx.full(size, float(i)), "i": i}


def check(batch, i):
    """Fail if a batch is not the one of a number."""
    assert batch["i"] == i
    for name in ("x", "y"):
        assert isinstance(batch[name], ndx.NDArray)
        assert (np.asarray(batch[name]) == i).all()


def live_bytes():
    return ndx.memory.stats("host")["allocated_bytes"]


# ---- The roads of batches: a thread, a task of an event loop, or neither -------------

_loops = []


class Looped:
    """A prefetch of an asynchronous source, with the methods of one that has a thread.

    Its event loop runs while a batch is taken. It is closed when the test ends.
    """

    def __init__(self, prefetch):
        self.prefetch = prefetch
        self.loop = asyncio.new_event_loop()
        _loops.append(self.loop)

    def __iter__(self):
        return LoopedIterator(aiter(self.prefetch), self.loop)

    def __len__(self):
        return len(self.prefetch)

    def __repr__(self):
        return repr(self.prefetch)

    def stats(self):
        return self.prefetch.stats()

    def close(self):
        self.loop.run_until_complete(self.prefetch.aclose())

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()


class LoopedIterator:
    def __init__(self, iterator, loop):
        self.iterator, self.loop = iterator, loop

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self.loop.run_until_complete(anext(self.iterator))
        except StopAsyncIteration:
            raise StopIteration from None

    def close(self):
        self.loop.run_until_complete(self.iterator.aclose())


class Asynchronous:
    """An asynchronous source of the items of another one."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def __aiter__(self):
        return items_of(self.source)


async def items_of(source):
    for item in source:
        await asyncio.sleep(0)
        yield item
        del item


def asynchronous(source):
    is_iterator = isinstance(source, Iterator)
    return items_of(source) if is_iterator else Asynchronous(source)


def end_loops():
    """Let the tasks end that nobody wants; fail if one goes on."""
    while _loops:
        loop = _loops.pop()
        for _ in range(10):
            loop.run_until_complete(asyncio.sleep(0))
        assert not asyncio.all_tasks(loop)
        loop.close()


ROADS = {
    "thread": ndx.prefetch,
    "no thread": lambda x, **options: ndx.prefetch(ndx.no_prefetch(x), **options),
    "task": lambda x, **options: Looped(ndx.prefetch(asynchronous(x), **options)),
    "no task": lambda x, **options: Looped(
        ndx.prefetch(ndx.no_prefetch(asynchronous(x)), **options)
    ),
}
every_road = pytest.mark.parametrize("prefetch", ROADS.values(), ids=ROADS)

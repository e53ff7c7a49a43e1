"""What tests of prefetching share: sources, and the end of their threads."""

import gc
import threading

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

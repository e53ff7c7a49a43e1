"""Random schedules: producers, consumers, early ends, errors, slow steps.

A schedule says what each step of the source does, and what the consumer does in turn.
Whatever happens: nothing hangs, each batch that is held has its values for as long as
it is held, errors come in place of their items, and nothing is left in the end.
``NDX_EXAMPLES`` with ``--hypothesis-profile=thorough`` says how many are drawn.
"""

import gc
import sys
import threading

import numpy as np
import pytest
from helpers.examples import examples
from helpers.prefetching import (
    LIMIT,
    ROADS,
    end_loops,
    live_bytes,
    no_thread_left,
    threads,
    wait_until,
)
from hypothesis import given
from hypothesis import strategies as st

import ndx

pytestmark = pytest.mark.threads

__all__ = ["no_thread_left"]


class Broken(Exception):
    """What a source raises."""


class Gate:
    """Steps of the source that are slow: they wait until the consumer lets them go."""

    def __init__(self):
        self.event = threading.Event()

    def shut(self):
        self.event.clear()

    def open(self):
        self.event.set()

    def wait(self):
        assert self.event.wait(LIMIT), "a step was never let go"


STEPS = st.fixed_dictionaries(
    {
        "size": st.sampled_from([0, 1, 10, 100, 3000]),
        "kind": st.sampled_from(["numpy", "ndx", "both", "view", "none"]),
        "does": st.sampled_from(["fine"] * 8 + ["slow", "slow", "garbage", "raise"]),
    }
)
OPTIONS = st.fixed_dictionaries(
    {
        "depth": st.integers(1, 4),
        "slots": st.sampled_from([None, 2, 3, 5]),
        "warmup": st.integers(1, 3),
        "slot_size": st.sampled_from([0, 0, 64, 4096, 1 << 16]),
        "on_held": st.sampled_from(["wait", "grow"]),
        "patience": st.sampled_from([0, 0.001]),
        "workspace": st.sampled_from(["ring", "ring", "ring", None]),
    }
)
ACTIONS = st.lists(
    st.sampled_from(
        ["next"] * 8
        + ["keep", "keep a view", "keep an export", "drop the first", "drop the last"]
        + ["drop all", "collect", "shut", "open", "close", "begin", "abandon", "stats"]
    ),
    max_size=25,
)
FINAL = st.sampled_from(["exhaust", "close", "abandon", "close the prefetch"])


class Source:
    """What a schedule says; it can be iterated again."""

    def __init__(self, steps, gate):
        self.steps, self.gate = steps, gate

    def __iter__(self):
        for i, step in enumerate(self.steps):
            if step["does"] == "slow":
                self.gate.wait()
            if step["does"] == "raise":
                raise Broken(i)
            temporary = ndx.full(50, -1.0)
            batch = make(i, **step)
            if step["does"] == "garbage":
                cycle = [temporary]
                cycle.append(cycle)
            yield i, batch


def make(i, size, kind, does):
    numpy, own = np.full(size, float(i)), ndx.full(size, float(i))
    return {
        "numpy": {"x": numpy},
        "ndx": [own],
        "both": (numpy, {"deep": [own]}, "text"),
        "view": (ndx.full((2, size), float(i))[1], numpy[::2]),
        "none": None,
    }[kind]


def arrays_of(batch):
    if isinstance(batch, ndx.NDArray):
        return [batch]
    if isinstance(batch, dict):
        batch = batch.values()
    if isinstance(batch, list | tuple | type({}.values())):
        return [x for each in batch for x in arrays_of(each)]
    assert not isinstance(batch, np.ndarray)
    return []


class Consumer:
    """Does what a schedule says, and looks at all that it holds."""

    def __init__(self, source, prefetch):
        self.source, self.prefetch = source, prefetch
        self.held = []
        self.begin()

    def begin(self):
        self.iterator = iter(self.prefetch)
        self.number, self.over = 0, False

    def next(self):
        """Take a batch; return it, or None if there was none."""
        # It waits for the source, which must not wait for it.
        self.source.gate.open()
        steps = self.source.steps
        try:
            i, batch = next(self.iterator)
        except StopIteration:
            assert self.over or self.number == len(steps)
        except Broken as error:
            self.expect_broken(error)
        except ndx.WorkspaceError as error:
            self.expect_held(error)
        else:
            assert not self.over
            assert i == self.number
            self.number += 1
            expected = arrays_count(steps[i])
            found = arrays_of(batch)
            assert [x.size for x in found] == expected
            check(i, found)
            return i, found
        self.over = True
        return None

    def expect_broken(self, error):
        assert not self.over
        assert error.args == (self.number,)
        assert self.source.steps[self.number]["does"] == "raise"

    def expect_held(self, error):
        assert not self.over
        assert "something still refers" in str(error)
        assert self.held
        assert self.prefetch.stats()["grown"] == 0

    def do(self, action):
        if action in ("next", "keep", "keep a view", "keep an export"):
            taken = self.next()
            if taken is None or action == "next":
                return
            i, found = taken
            if action == "keep a view":
                found = [x[x.size // 2 :] for x in found]
            elif action == "keep an export":
                found = [np.asarray(x)[: x.size // 2 + 1] for x in found]
            self.held.append((i, found))
        elif action == "drop the first":
            del self.held[:1]
        elif action == "drop the last":
            del self.held[-1:]
        elif action == "drop all":
            self.held.clear()
        elif action == "collect":
            gc.collect()
        elif action == "shut":
            self.source.gate.shut()
        elif action == "open":
            self.source.gate.open()
        elif action == "stats":
            stats = self.prefetch.stats()
            assert stats["ready"] <= 4
            assert repr(self.prefetch)
        elif action == "close":
            self.source.gate.open()
            self.iterator.close()
            self.over = True
        elif action == "begin":
            self.begin()
        elif action == "abandon":
            self.iterator = None
            self.begin()

    def check(self):
        for i, found in self.held:
            check(i, found)


def arrays_count(step):
    n = step["size"]
    return {
        "numpy": [n], "ndx": [n], "both": [n, n], "view": [n, (n + 1) // 2], "none": [],
    }[step["kind"]]  # fmt: skip


def check(i, found):
    for x in found:
        assert (np.asarray(x) == i).all()


def run(steps, options, actions, final, road):
    # What Hypothesis has noted of earlier schedules is not looked at again each time.
    gc.freeze()
    before = live_bytes()
    source = Source(steps, Gate())
    prefetch = road(source, **options)
    consumer = Consumer(source, prefetch)
    for action in actions:
        consumer.do(action)
        consumer.check()
    if final == "exhaust":
        while not consumer.over:
            consumer.do("next")
            consumer.check()
    source.gate.open()
    if final == "close":
        consumer.iterator.close()
    elif final == "close the prefetch":
        prefetch.close()
        assert not threads()
    consumer.iterator = consumer.prefetch = prefetch = None
    end_loops()
    consumer.check()
    assert wait_until(lambda: not threads()), "a thread is left"
    # Without the prefetch, what was kept is as good.
    consumer.check()
    consumer.held.clear()
    if live_bytes() != before:
        # Errors that the consumer has met, and the source's own garbage.
        gc.collect()
    assert live_bytes() == before


SCHEDULES = (st.lists(STEPS, max_size=12), OPTIONS, ACTIONS, FINAL)


@pytest.fixture(autouse=True, scope="module")
def _often_another_thread():
    """Let the threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.timeout(3600)
@examples(150)
@given(*SCHEDULES)
def test_random_schedules_with_a_thread(steps, options, actions, final):
    run(steps, options, actions, final, ndx.prefetch)


@pytest.mark.parametrize("road", ["no thread", "task", "no task"])
@examples(50)
@given(*SCHEDULES)
def test_random_schedules_without_a_thread(road, steps, options, actions, final):
    steps = [{**step, "does": step["does"].replace("slow", "fine")} for step in steps]
    run(steps, options, actions, final, ROADS[road])

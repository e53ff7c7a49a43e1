"""Outcomes of worker threads: each at once, or several together."""

import contextlib
import queue
import threading

import pytest

from ndx._pipelines.workers import Crew

pytestmark = [pytest.mark.threads, pytest.mark.usefixtures("nothing_left_behind")]


class Counted(queue.SimpleQueue):
    """A queue that counts how often something was put into it."""

    puts = 0

    def put(self, item):
        self.puts += 1
        super().put(item)


@pytest.fixture
def start():
    """Return what starts a crew of one worker, whose tasks wait for an event first."""
    with contextlib.ExitStack() as stack:

        def started(call, **options):
            begun, go = threading.Event(), threading.Event()

            @contextlib.contextmanager
            def opened():
                begun.set()
                go.wait(60)
                yield call

            crew = Crew([opened], own_tasks=True, name="test", threads=1, **options)
            stack.callback(crew.close)
            stack.callback(go.set)
            assert begun.wait(60)
            crew._post.done = Counted()
            return crew, go

        yield started


@pytest.mark.parametrize("seldom", [False, True])
def test_outcomes_come_in_order(start, seldom):
    crew, go = start(lambda x: 2 * x, seldom=seldom)
    for i in range(400):
        crew.put(i, i)
    go.set()
    found = [crew.take() for _ in range(400)]
    assert [each.key for each in found] == list(range(400))
    assert [each.value for each in found] == list(range(0, 800, 2))
    if seldom:
        assert crew._post.done.puts < 200
    else:
        assert crew._post.done.puts == 400


def test_errors_come_at_once(start):
    crew, go = start(lambda x: 1 // x, seldom=True)
    for i, x in enumerate([1, 1, 0, 1]):
        crew.put(i, x)
    go.set()
    assert [crew.take().value for _ in range(2)] == [1, 1]
    assert isinstance(crew.take().error, ZeroDivisionError)
    # Tasks after it are left.
    assert crew.close() == []


def test_close_returns_what_nobody_has_taken(start):
    crew, go = start(lambda x: x, seldom=True)
    for i in range(10):
        crew.put(i, i)
    go.set()
    assert crew.take().value == 0
    # Those that had not begun are left.
    found = [each.value for each in crew.close()]
    assert found == list(range(1, 1 + len(found)))

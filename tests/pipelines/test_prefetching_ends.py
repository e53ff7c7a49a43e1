"""The end of a prefetch: early, by an error, by a signal, in a child, at exit."""

import gc
import os
import sys
import threading
import time
import weakref

import pytest
from helpers.commands import run_python
from helpers.prefetching import (
    Numbers,
    check,
    item,
    live_bytes,
    no_thread_left,  # noqa: F401
    threads,
    threads_end,
    wait_until,
)

import ndx
from ndx._pipelines import producing, workers

pytestmark = pytest.mark.threads


def test_who_keeps_the_error_keeps_no_thread():
    def source():
        yield 1
        raise ZeroDivisionError

    def consume(kept):
        try:
            for _ in ndx.prefetch(source()):
                pass
        except ZeroDivisionError as error:
            kept.append(error)

    kept = []
    consume(kept)
    assert threads_end()
    assert kept


def test_leaving_a_loop_ends_the_thread():
    source = Numbers(100)
    before = live_bytes()
    for batch in ndx.prefetch(source, depth=4):
        check(batch, 0)
        break
    assert threads_end()
    assert source.closed == 1
    del batch
    assert live_bytes() == before


def test_an_error_of_the_consumer():
    source = Numbers(100)

    def consume():
        for batch in ndx.prefetch(source, depth=4):
            check(batch, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()
    gc.collect()
    assert threads_end()
    assert source.closed == 1


def test_an_abandoned_iterator_is_freed_without_the_collector():
    """Neither the thread nor a cycle refers to it."""
    gc.disable()
    try:
        batches = ndx.prefetch(Numbers(100))
        iterator = iter(batches)
        check(next(iterator), 0)
        gone = weakref.ref(batches), weakref.ref(iterator)
        del iterator
        assert gone[1]() is None
        assert len(threads()) == 1
        del batches
        assert gone[0]() is None
        assert threads_end()
        # An iterator over a generator, too.
        batches = ndx.prefetch(item(i) for i in range(100))
        for batch in batches:
            check(batch, 0)
            break
        assert len(threads()) == 1
        del batches
        assert threads_end()
    finally:
        gc.enable()


def test_after_an_error_nothing_is_kept_by_cycles():
    gc.disable()
    try:

        def source():
            yield item(0)
            raise ValueError("broken")

        def consume():
            try:
                list(ndx.prefetch(source()))
            except ValueError:
                return
            pytest.fail("no error")

        before = live_bytes()
        consume()
        assert threads_end()
        assert live_bytes() == before
    finally:
        gc.enable()


def test_close_waits_for_the_source_to_be_closed():
    source = Numbers(100)
    batches = ndx.prefetch(source, depth=4)
    iterator = iter(batches)
    check(next(iterator), 0)
    iterator.close()
    assert source.closed == 1
    assert len(threads()) == 1
    with pytest.raises(StopIteration):
        next(iterator)
    iterator.close()
    check(next(iter(batches)), 0)
    batches.close()
    assert not threads()
    assert source.closed == 2
    batches.close()
    with pytest.raises(RuntimeError, match="this prefetch is closed"):
        iter(batches)


def test_close_while_another_thread_waits():
    """Who waits for a batch gets the end."""
    go_on = threading.Event()

    def source():
        yield item(0)
        go_on.wait(20)
        yield item(1)

    batches = ndx.prefetch(source())
    iterator = iter(batches)
    check(next(iterator), 0)
    ended = []
    waits = batches.stats()["source_waits"]
    waiting = threading.Thread(target=lambda: ended.append(next(iterator, "end")))
    waiting.start()
    assert wait_until(lambda: batches.stats()["source_waits"] > waits)
    closing = threading.Thread(target=batches.close)
    closing.start()
    waiting.join(20)
    assert ended == ["end"]
    go_on.set()
    closing.join(20)
    assert not threads()


def test_a_source_that_does_not_return(monkeypatch):
    """Closing does not hang; the thread ends when the step does."""
    monkeypatch.setattr(producing, "CLOSE_TIMEOUT", 0.01)
    in_step, go_on = threading.Event(), threading.Event()

    def source():
        yield item(0)
        in_step.set()
        go_on.wait(60)
        yield item(1)

    for close in ("iterator", "prefetch"):
        in_step.clear()
        go_on.clear()
        batches = ndx.prefetch(source())
        iterator = iter(batches)
        check(next(iterator), 0)
        assert in_step.wait(30)
        with pytest.warns(ResourceWarning, match="still in its step after"):
            (iterator if close == "iterator" else batches).close()
        del iterator, batches
        assert len(threads()) == 1
        go_on.set()
        assert threads_end()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_while_the_source_is_closed(monkeypatch):
    """Who closes gets it; without, it is reported like any error of a thread."""

    class Source:
        def __iter__(self):
            try:
                yield item(0)
                yield item(1)
            finally:
                raise ConnectionError("lost")

    for close in ("iterator", "prefetch"):
        batches = ndx.prefetch(Source(), depth=1)
        iterator = iter(batches)
        check(next(iterator), 0)
        with pytest.raises(ConnectionError, match="lost"):
            (iterator if close == "iterator" else batches).close()
        batches.close()
    reported = []
    monkeypatch.setattr(threading, "excepthook", reported.append)
    check(next(iter(ndx.prefetch(Source(), depth=1))), 0)
    assert threads_end()
    assert [args.exc_type for args in reported] == [ConnectionError]
    reported.clear()


def test_the_source_closes_its_own_prefetch():
    def source():
        yield item(0)
        batches.close()
        yield item(1)

    batches = ndx.prefetch(source(), depth=2)
    iterator = iter(batches)
    next(iterator, None)
    assert next(iterator, "end") == "end"
    assert threads_end()


def test_a_prefetch_of_a_prefetch():
    source = Numbers(50)
    for stop in (5, 50):
        for i, batch in enumerate(ndx.prefetch(ndx.prefetch(source, 2), depth=2)):
            check(batch, i)
            if i == stop:
                break
        del batch
        assert threads_end()
    assert source.closed == 2


def test_a_generator_of_the_user_is_not_closed():
    """As in any loop that is left: who has made it may go on with it."""
    numbers = iter(range(100))
    with ndx.prefetch(numbers, depth=2) as batches:
        assert next(iter(batches)) == 0
    assert 1 <= next(numbers) <= 5


@pytest.mark.skipif(sys.platform == "win32", reason="signals to oneself")
def test_ctrl_c_while_the_consumer_waits():
    """KeyboardInterrupt comes at once; the epoch is over, and nothing hangs."""
    printed = run_python(
        """
        import os, signal, sys, threading, time, ndx

        # Where the tests run in the background, it is ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        go_on, taken = threading.Event(), threading.Event()

        def waits(thread):
            return sys._current_frames()[thread.ident].f_code.co_name == "wait"

        class Source:
            def __iter__(self):
                yield ndx.ones(3)
                taken.wait(30)
                while not waits(threading.main_thread()):
                    time.sleep(0.01)
                os.kill(os.getpid(), signal.SIGINT)
                go_on.wait(30)
                yield ndx.ones(3)

        batches = ndx.prefetch(Source())
        iterator = iter(batches)
        start = time.monotonic()
        try:
            for x in iterator:
                taken.set()
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 20, next(iterator, "end"))
        go_on.set()
        iterator.close()
        batches.close()
        print(threading.active_count())
        """
    )
    assert printed.split() == ["interrupted", "True", "end", "1"]


EXITS = {
    "at its end": "",
    "by sys.exit": "import sys; sys.exit(0)",
    "in a function": """
def consume():
    for x in ndx.prefetch(Source()):
        return
consume()
""",
    "while a thread waits": """
import threading
waiting = iter(ndx.prefetch(Slow()))
threading.Thread(target=lambda: list(waiting), daemon=True).start()
""",
}


@pytest.mark.parametrize("how", EXITS)
def test_the_interpreter_ends(how):
    """Threads are stopped and joined before Python ends; nothing is printed."""
    printed = run_python(
        """
import time, ndx, numpy as np

class Source:
    def __iter__(self):
        while True:
            yield np.ones(1000), ndx.ones(1000)

class Slow:
    def __iter__(self):
        while True:
            time.sleep(0.02)
            yield ndx.ones(10)

kept = [iter(ndx.prefetch(source())) for source in (Source, Slow) * 2]
batches = [next(each) for each in kept]
print("done", flush=True)
"""
        + EXITS[how]
    )
    assert printed == "done\n"


def test_the_interpreter_ends_within_a_step():
    """A source that doesn't return can't keep Python from ending."""
    start = time.monotonic()
    run_python(
        """
        import time, ndx
        from ndx._pipelines import producing

        producing.CLOSE_TIMEOUT = 0.1

        def source():
            yield 1
            time.sleep(1000)

        iterator = iter(ndx.prefetch(source()))
        next(iterator)
        """
    )
    assert time.monotonic() - start < 100


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork():
    """A child gets an error for the parent's epoch, and can begin one of its own."""
    printed = run_python(
        """
        import os, ndx, numpy as np

        class Source:
            def __iter__(self):
                return (np.full(100, i) for i in range(20))

        batches = ndx.prefetch(Source(), depth=3)
        direct = ndx.prefetch(ndx.no_prefetch(Source()))
        iterator, second = iter(batches), iter(direct)
        kept = next(iterator), next(second)
        child = os.fork()
        if child == 0:
            try:
                next(iterator)
            except RuntimeError as error:
                assert "process that was forked" in str(error)
                iterator.close()
                assert int(kept[0][3]) == int(kept[1][3]) == 0
                assert int(next(second)[1]) == 1
                assert [int(x[0]) for x in batches] == list(range(20))
                batches.close()
                print("child", flush=True)
                del iterator
                raise SystemExit(0)
            raise SystemExit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert [int(x[0]) for x in iterator] == list(range(1, 20))
        print("parent")
        """
    )
    assert printed == "child\nparent\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_forked_while_a_thread_takes_a_batch():
    """The child does not wait for a lock that nobody there will release."""
    printed = run_python(
        """
        import os, signal, threading, ndx

        started, forked = threading.Event(), threading.Event()

        class Source:
            def __iter__(self):
                yield ndx.ones(3)
                started.set()
                forked.wait()
                yield ndx.ones(3)

        iterator = iter(ndx.prefetch(ndx.no_prefetch(Source())))
        next(iterator)
        thread = threading.Thread(target=next, args=(iterator,), daemon=True)
        thread.start()
        started.wait()
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            try:
                next(iterator)
            except (RuntimeError, ValueError) as error:
                print(type(error).__name__, error, flush=True)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        forked.set()
        thread.join()
        """
    )
    assert "already" in printed


def test_a_thread_that_can_not_start(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    batches = ndx.prefetch(Numbers(3))
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            iter(batches)
    assert sum(1 for _ in batches) == 3


def test_a_thread_that_has_died(monkeypatch):
    """The consumer finds out, instead of waiting for ever."""
    monkeypatch.setattr(producing, "_LOOK_AFTER", 0.01)
    monkeypatch.setattr(producing.Producer, "run", lambda self: None)
    with pytest.raises(RuntimeError, match="has ended; make a new prefetch"):
        next(iter(ndx.prefetch(Numbers(3))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_new_epoch_in_a_child_forked_while_the_source_works():
    """The context in which the source runs was entered by a thread of the parent."""
    printed = run_python(
        """
        import os, threading, ndx

        working, go_on = threading.Event(), threading.Event()

        class Source:
            def __iter__(self):
                yield ndx.zeros(3)
                working.set()
                go_on.wait()
                yield ndx.ones(3)

        batches = ndx.prefetch(Source())
        next(iterator := iter(batches))
        working.wait()
        child = os.fork()
        if child:
            os.waitpid(child, 0)
        go_on.set()
        print([float(x[0]) for x in batches], flush=True)
        os._exit(0)
        """
    )
    assert printed == "[0.0, 1.0]\n" * 2


@pytest.mark.parametrize("begun", [False, True])
def test_ctrl_c_while_the_thread_begins(monkeypatch, begun):
    start = threading.Thread.start

    def interrupted(thread):
        if begun:
            start(thread)
        raise KeyboardInterrupt

    batches = ndx.prefetch(Numbers(3))
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt):
        iter(batches)
    monkeypatch.undo()
    assert threads_end()
    # Nor does the end of Python wait for a thread that has not begun.
    workers._close_all()
    assert len(list(batches)) == 3

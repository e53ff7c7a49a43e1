"""`ndx.parallel.map`: errors, early ends, cores, progress."""

import contextlib
import gc
import itertools
import os
import signal
import sys
import time

import pytest
from helpers.parallel import doubled, named, script

import ndx
from ndx._pipelines import workers as crews

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
]


def fail_at(*numbers):
    def work(i):
        if i in numbers:
            raise LookupError(i)
        return i

    return work


def test_errors_say_which_item():
    results = ndx.parallel.map(fail_at(3, 5), range(10), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LookupError) as caught:
        next(results)
    assert caught.value.index_of_item == 3
    assert any("item 3" in note for note in caught.value.__notes__)
    assert list(results) == []


def test_the_rest_is_left_after_an_error():
    done = []

    def work(i):
        done.append(i)
        if i == 1:
            raise LookupError
        time.sleep(0.01)

    with pytest.raises(LookupError):
        list(ndx.parallel.map(work, range(1000), workers=2, buffersize=500))
    # In the time of these, the consumer has come to the error, on any machine.
    assert len(done) < 500


def test_stop_iteration_does_not_end_the_results():
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(ndx.parallel.map(lambda i: next(iter([])), [1]))


def test_system_exit_of_an_item_reaches_the_caller():
    with pytest.raises(SystemExit):
        list(ndx.parallel.map(sys.exit, [3]))


def test_errors_without_attributes_are_raised_all_the_same():
    class Bare(Exception):
        def __setattr__(self, name, value):
            raise AttributeError(name)

    def work(i):
        raise Bare

    with pytest.raises(Bare):
        list(ndx.parallel.map(work, [1]))


@pytest.mark.parametrize("tool", ["map", "train", "predict"])
def test_an_error_keeps_no_arrays(tool):
    def work(x, *more):
        y = x + 1
        raise LookupError(float(y[0, 0]))

    def run():
        x = ndx.zeros((1000, 1))
        with contextlib.suppress(LookupError):
            if tool == "map":
                list(ndx.parallel.map(work, [x], workers=1))
            elif tool == "train":
                ndx.parallel.train(work, x, [x], workers=1)
            else:
                with ndx.parallel.Predictor(work, deadline=0) as predict:
                    predict(x)

    gc.collect()
    gc.disable()
    try:
        before = ndx.memory.stats("host")["allocated_bytes"]
        run()
        assert ndx.memory.stats("host")["allocated_bytes"] <= before
    finally:
        gc.enable()


def test_a_worker_that_can_not_start_is_an_error():
    config = ndx.WorkspaceConfig(path="/nowhere/state.bin", size="1MiB")
    with pytest.raises(OSError, match="nowhere"):
        list(ndx.parallel.map(doubled, [1, 2, 3], workers=2, config=config))


def test_arrays_in_unknown_objects_go_stale_and_say_so():
    class Holder:
        def __init__(self, x):
            self.x = x

    (found,) = ndx.parallel.map(lambda x: Holder(x + 1), [ndx.ones(3)])
    with pytest.raises(ndx.StaleArrayError):
        found.x + 1


@pytest.mark.parametrize(
    ("error", "match", "given"),
    [
        (TypeError, "iterable", {"args": (doubled,)}),
        (TypeError, "callable", {"args": (3, [1])}),
        (TypeError, "not iterable", {"args": (doubled, 3)}),
        (ValueError, "workers=0", {"workers": 0}),
        (TypeError, "workers must be an int", {"workers": 1.5}),
        (ValueError, "kind of workers", {"workers": "fibres"}),
        (ValueError, "give one of the two", {"workers": 2, "processes": 2}),
        (ValueError, "contradict", {"workers": "threads", "processes": 2}),
        (ValueError, "processes=0", {"processes": 0}),
        (ValueError, "buffersize=0", {"buffersize": 0}),
        (ValueError, "threads=0", {"threads": 0}),
        (ValueError, "for processes", {"start_method": "spawn"}),
        (TypeError, "a name", {"workspace": ndx.WorkspaceConfig()}),
        (TypeError, "WorkspaceConfig", {"config": {"size": 3}}),
        (
            ValueError,
            "asks for none",
            {"workspace": None, "config": ndx.WorkspaceConfig()},
        ),
        (ValueError, "unknown backend", {"backend": "disk"}),
        (TypeError, "list of devices", {"devices": "cpu"}),
        (TypeError, "list of devices", {"devices": []}),
        (ValueError, "give one", {"devices": ["cpu"], "backend": "host"}),
        (TypeError, "progress", {"progress": 3}),
    ],
)
def test_bad_arguments(error, match, given):
    given = dict(given)
    args = given.pop("args", (doubled, [1]))
    with pytest.raises(error, match=match):
        ndx.parallel.map(*args, **given)


async def coroutine(x):
    return x


def generator(x):
    yield x


async def asynchronous_generator(x):
    yield x


@pytest.mark.parametrize("function", [coroutine, generator, asynchronous_generator])
def test_functions_that_would_not_run(function):
    with pytest.raises(TypeError, match="function"):
        ndx.parallel.map(function, [1])


def test_dropped_results_end_the_workers():
    for each in ndx.parallel.map(abs, itertools.count(), workers=2):
        if each == 5:
            break
    assert not named("ndx-map")


def test_results_that_nobody_asked_for():
    results = ndx.parallel.map(abs, itertools.count(), workers=2)
    assert "0 yielded" in repr(results)
    assert results.__length_hint__() == 0
    results.close()
    assert "closed" in repr(results)
    results.close()
    assert list(results) == []
    assert ndx.parallel.map(abs, [1, 2]).__length_hint__() == 2


def test_the_context_manager_ends_the_workers():
    results = ndx.parallel.map(abs, itertools.count(), workers=2)
    with contextlib.suppress(LookupError), results:
        next(results)
        raise LookupError
    assert not named("ndx-map")


def test_a_cycle_with_the_results_is_no_hang():
    class Node:
        pass

    node = Node()
    node.self = node
    node.results = ndx.parallel.map(abs, itertools.count(), workers=2)
    next(node.results)
    del node
    gc.collect()
    assert not named("ndx-map")


def test_ctrl_c_ends_the_workers():
    status, out, err = script(
        """
import itertools, threading, time, ndx
def work(i):
    time.sleep(0.01)
    return i
try:
    for i in ndx.parallel.map(work, itertools.count(), workers=2):
        if i == 5:
            print("running", flush=True)
except KeyboardInterrupt:
    pass
print(threading.active_count(), ndx.memory.workspaces(all_threads=True))
""",
        until="running",
        sends=signal.SIGINT,
    )
    assert (status, out, err) == (0, "1 []\n", "")


@pytest.mark.parametrize("kind", ["workers", "processes"])
def test_a_program_ends_with_workers_that_wait(kind):
    """Threads and processes that wait for work don't keep a program from its end."""
    status, _, err = script(
        f"""
import itertools, ndx
results = ndx.parallel.map(abs, itertools.count(), {kind}=2)
predict = ndx.parallel.Predictor(lambda x: x)
print(next(results), flush=True)
""",
        until="0",
    )
    assert (status, err) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_is_told():
    with ndx.parallel.map(abs, range(9), workers=1) as results:
        next(results)
        if (child := os.fork()) == 0:
            code = 1
            with contextlib.suppress(BaseException):
                try:
                    next(results)
                except RuntimeError as error:
                    code = 0 if "another process" in str(error) else 2
                results.close()
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert list(results) == list(range(1, 9))


@pytest.fixture
def cores():
    """Return a function that sets ndx's number of threads, until the test ends."""
    before = ndx.get_num_threads()
    yield ndx.set_num_threads
    ndx.set_num_threads(before)


def test_workers_share_the_cores(cores):
    def count(i):
        return ndx.get_num_threads()

    cores(4)
    assert list(ndx.parallel.map(count, range(3), workers=3)) == [2, 2, 2]
    assert list(ndx.parallel.map(count, range(8), workers=8)) == [1] * 8
    assert ndx.get_num_threads() == 4
    assert list(ndx.parallel.map(count, [1, 2], workers=2, threads=2)) == [2, 2]
    assert ndx.get_num_threads() == 4


def test_maps_at_the_same_time_share_the_cores(cores):
    cores(8)
    with ndx.parallel.map(abs, range(50), workers=3):
        assert ndx.get_num_threads() == 6
        with ndx.parallel.map(abs, range(50), workers=4):
            assert ndx.get_num_threads() == 2
        assert ndx.get_num_threads() == 6
    assert ndx.get_num_threads() == 8


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_has_all_cores(cores):
    cores(8)
    with ndx.parallel.map(abs, range(50), workers=3):
        assert ndx.get_num_threads() == 6
        if (child := os.fork()) == 0:
            os._exit(ndx.get_num_threads())
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 8
        assert ndx.get_num_threads() == 6


def test_ctrl_c_while_workers_take_their_cores(cores, monkeypatch):
    cores(8)
    apply, calls = crews._apply, []

    def interrupted():
        apply()
        calls.append(None)
        if len(calls) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(crews, "_apply", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ndx.parallel.map(abs, range(50), workers=3)
    gc.collect()
    assert ndx.get_num_threads() == 8


def test_a_number_that_the_user_sets_meanwhile_stays(cores):
    cores(8)
    with ndx.parallel.map(abs, range(50), workers=3):
        cores(5)
    assert ndx.get_num_threads() == 5


def test_blas_has_fewer_threads_meanwhile():
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def counts(*_):
        found = threadpoolctl.threadpool_info()
        return [each["num_threads"] for each in found if each["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = counts()
        if not any(each > 1 for each in before):
            pytest.skip("threadpoolctl finds no BLAS with threads")
        found = list(ndx.parallel.map(counts, range(4), workers=4, threads=1))
        assert found == [[1] * len(before)] * 4
        assert counts() == before

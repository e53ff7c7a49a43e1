"""`ndx.parallel.map` in threads: order, scopes, workspaces, memory."""

import dataclasses
import gc
import itertools
import threading
import time
import weakref

import numpy as np
import pytest
from helpers.examples import examples
from helpers.parallel import doubled, host_bytes, named, nothing_left, wait_until
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx.testing import assert_equal

pytestmark = [
    pytest.mark.threads,
    pytest.mark.usefixtures("nothing_left_behind"),
]


def items(count, size=100):
    return [ndx.full(size, float(i)) for i in range(count)]


def test_several_iterables_end_with_the_shortest():
    found = ndx.parallel.map(lambda x, y: x + y, [1, 2, 3], itertools.count(10))
    assert list(found) == [11, 13, 15]


def test_any_callable_and_any_values():
    assert list(ndx.parallel.map(float, ["1", "2"], workers=2)) == [1.0, 2.0]
    assert list(ndx.parallel.map(doubled, [], workers=2)) == []
    assert list(ndx.parallel.map(np.sum, [ndx.ones(3)])) == [3.0]


def test_each_worker_has_a_workspace_of_its_own():
    """A workspace for each worker thread, and results that outlive it."""
    barrier = threading.Barrier(2, timeout=20)

    def work(x):
        barrier.wait()
        y = x + 1
        (space,) = [w for w in ndx.memory.workspaces() if w.name == "mine"]
        return {"y": y, "inside": y.workspace, "space": id(space), "lies": y.attached}

    config = ndx.WorkspaceConfig(size="64KiB", spill="fail")
    found = list(
        ndx.parallel.map(work, items(4), workers=2, workspace="mine", config=config)
    )
    assert {each["inside"] for each in found} == {"mine"}
    assert all(each["lies"] for each in found)
    assert len({each["space"] for each in found}) == 2
    for i, each in enumerate(found):
        assert each["y"].workspace is None
        assert_equal(each["y"], np.full(100, i + 1.0))


def test_workers_are_tied_to_backends_and_devices():
    """The workers' arrays, and the results, lie where the caller said."""
    with ndx.use("host", limit="8MiB") as small:
        pass

    def work(x):
        return x + 1

    (found,) = ndx.parallel.map(work, items(1), backend=small)
    assert found.backend is small
    (found,) = ndx.parallel.map(work, items(1), devices=["cpu"])
    assert found.device == "cpu"
    with ndx.parallel.map(work, items(5), devices=["cpu", "cpu"]) as results:
        assert len(named("ndx-map")) == 2
        assert len(list(results)) == 5
    with ndx.use("mmap"):
        (found,) = ndx.parallel.map(work, items(1), devices=[ndx.Device("cpu")])
    assert found.backend.name == "mmap"


def test_arrays_leave_the_workspace_wherever_they_are_nested():
    @dataclasses.dataclass
    class Pair:
        x: object
        y: object

    def work(x):
        return Pair([x + 1], {"a": (x + 2, x[:1])})

    first, *_ = ndx.parallel.map(work, items(3), workers=2)
    assert_equal(first.x[0], np.full(100, 1.0))
    assert_equal(first.y["a"][0], np.full(100, 2.0))


def test_a_worker_reaches_a_steady_state():
    counts = []

    def work(x):
        y = ndx.sum(x * 2 + 1)
        counts.append(ndx.memory.workspaces()[0].stats()["spilled_count"])
        return float(y)

    list(ndx.parallel.map(work, items(6), workers=1))
    assert counts[0] > 0
    assert counts[1:] == [0] * 5


def test_without_workspaces():
    found = ndx.parallel.map(lambda x: (x + 1).workspace, items(2), workspace=None)
    assert list(found) == [None, None]


def test_works_within_the_scopes_of_the_caller():
    """The caller's backend serves the workers; its workspace does not."""
    with ndx.use("host", limit="8MiB") as small, ndx.workspace("outer", size="1MiB"):
        mine = ndx.ones(10)
        found = list(ndx.parallel.map(lambda x: x + mine, [ndx.ones(10)] * 4))
        assert {each.workspace for each in found} == {None}
        assert all(each.backend is small for each in found)
        assert (mine + 1).workspace == "outer"
    assert_equal(found[3], np.full(10, 2.0))
    ndx.workspace("outer").destroy()


def test_may_be_nested():
    def outer(n):
        return sum(ndx.parallel.map(lambda i: i * n, range(4), workers=2))

    assert list(ndx.parallel.map(outer, [1, 2, 3], workers=2)) == [6, 12, 18]


def test_a_scope_that_ends_does_not_end_the_workers():
    with ndx.use("host", limit="8MiB") as small:
        results = ndx.parallel.map(lambda x: x + 1, range(20), workers=2)
        more = ndx.parallel.map(lambda i: ndx.full(3, i), range(20), workers=2)
    assert list(results) == list(range(1, 21))
    assert {each.backend for each in more} == {small}


def test_items_are_taken_as_results_are_asked_for():
    taken = []

    def source():
        for i in range(100):
            taken.append(i)
            yield i

    with ndx.parallel.map(abs, source(), workers=2, buffersize=5) as results:
        assert len(taken) == 5
        assert [next(results) for _ in range(3)] == [0, 1, 2]
        assert len(taken) <= 8
    assert len(taken) <= 8


def test_arrays_are_shared_between_threads():
    """Nothing is copied on the way to a thread: what it writes, the caller sees."""
    x = ndx.zeros(4)
    list(ndx.parallel.map(lambda i: x.__setitem__(i, i), range(4), workers=2))
    assert_equal(x, np.arange(4.0))
    given = items(3)
    assert list(ndx.parallel.map(id, given, workers=2)) == list(map(id, given))


def test_memory_is_bounded_by_the_buffer():
    """However many items, only those of the buffer are in memory, in and out."""
    alive, most = [], []

    def source():
        for i in range(60):
            x = ndx.full(1000, float(i))
            alive.append(weakref.ref(x))
            yield x
            del x

    for result in ndx.parallel.map(doubled, source(), workers=2, buffersize=4):
        alive.append(weakref.ref(result))
        most.append(sum(each() is not None for each in alive))
    # Those of the buffer, and the last ones in the loops' hands.
    assert max(most) <= 4 + 4


def test_workspaces_of_workers_are_listed_and_purged():
    """Another thread sees the workers' arenas, and can give their memory back."""
    go, begun = threading.Event(), threading.Semaphore(0)

    def work(x):
        y = x * 2
        begun.release()
        go.wait(20)
        return float(y[0])

    config = ndx.WorkspaceConfig(size="1MiB")
    with ndx.parallel.map(
        work, items(2) * 2, workers=2, workspace="big", config=config, buffersize=2
    ) as results:
        assert begun.acquire(timeout=20)
        assert begun.acquire(timeout=20)
        spaces = [w for w in ndx.memory.workspaces(all_threads=True) if w.name == "big"]
        assert [each.size for each in spaces] == [2**20] * 2
        assert {each.thread.name for each in spaces} == {"ndx-map-0", "ndx-map-1"}
        assert "big" in str(ndx.memory.workspace_summary(all_threads=True))
        # Those that compute are left alone.
        ndx.memory.destroy_all(all_threads=True)
        assert [each.size for each in spaces] == [2**20] * 2
        go.set()
        wait_until(lambda: not any(each.is_open for each in spaces))
        ndx.memory.destroy_all(all_threads=True)
        assert [each.size for each in spaces] == [0, 0]
        # They begin anew.
        assert list(results) == [0.0, 2.0, 0.0, 2.0]


def test_threads_that_come_and_go_leave_no_memory():
    """Many short-lived workers: their arenas end with them, not with the collector."""
    before = host_bytes()
    gc.disable()
    try:
        for _ in range(20):
            list(ndx.parallel.map(doubled, items(3), workers=3))
        assert ndx.memory.stats("host")["allocated_bytes"] <= before
    finally:
        gc.enable()


@pytest.mark.parametrize("tool", ["map", "train", "predict"])
def test_the_collector_is_never_called(tool, monkeypatch):
    """No forced collection, whatever the workers do."""
    calls = []
    monkeypatch.setattr(gc, "collect", lambda *args: calls.append(args))
    if tool == "map":
        list(ndx.parallel.map(doubled, items(20), workers=2))
    elif tool == "train":
        ndx.parallel.train(lambda p, x: (p + x, 0.0), ndx.zeros(100), items(20))
    else:
        with ndx.parallel.Predictor(doubled, deadline=0) as predict:
            for each in items(20):
                predict(each)
    assert calls == []


def test_there_are_no_threads_but_the_workers():
    """No helper threads; daemons, so that none blocks the end of a process."""
    before = set(threading.enumerate())
    with ndx.parallel.map(doubled, items(9), workers=2) as results:
        made = set(threading.enumerate()) - before
        assert len(made) == 2
        assert all(each.daemon for each in made)
        list(results)
        # They end with the last item.
        assert set(threading.enumerate()) == before


@examples(100)
@given(st.data())
def test_random_schedules(data):
    """Items, errors, slow items and early exits: each result is right, or an error."""
    count = data.draw(st.integers(0, 30), "items")
    workers = data.draw(st.integers(1, 4), "workers")
    buffersize = data.draw(st.none() | st.integers(1, 10), "buffersize")
    bad = data.draw(st.sets(st.integers(0, 30), max_size=3), "errors at")
    broken = data.draw(st.none() | st.integers(0, 30), "source fails at")
    slow = data.draw(st.sets(st.integers(0, 30), max_size=3), "slow at")
    leave = data.draw(st.none() | st.integers(0, 30), "leaves at")

    def source():
        for i in range(count):
            if i == broken:
                raise OSError(i)
            yield ndx.full(50, float(i))

    def work(x):
        i = int(x[0])
        if i in slow:
            time.sleep(0.001)
        if i in bad:
            raise LookupError(i)
        return x * 2, [x + 1]

    failing = {i for i in (*bad, broken) if i is not None and i < count}
    first = min(failing, default=None)
    wanted = count if first is None else first
    left = leave is not None and leave < wanted
    with nothing_left():
        found, error = [], None
        results = ndx.parallel.map(
            work, source(), workers=workers, buffersize=buffersize
        )
        try:
            for i, each in enumerate(results):
                found.append(each)
                if i == leave:
                    break
        except (LookupError, OSError) as raised:
            error = raised.index_of_item
        del results
        assert error == (None if left else first)
        assert len(found) == (leave + 1 if left else wanted)
        for i, (twice, (more,)) in enumerate(found):
            assert_equal(twice, np.full(50, 2.0 * i))
            assert_equal(more, np.full(50, i + 1.0))


def test_several_threads_take_from_one_iterator():
    results, found = ndx.parallel.map(doubled, range(200), workers=2), []
    threads = [threading.Thread(target=lambda: found.extend(results)) for _ in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(found) == [2 * i for i in range(200)]


def test_who_would_wait_for_itself_gets_an_error():
    def asks(source):
        yield from source
        with pytest.raises(RuntimeError, match="iterable of a map asks .* itself"):
            next(results)

    results = ndx.parallel.map(abs, asks(range(4)), workers=1, buffersize=2)
    assert list(results) == [0, 1, 2, 3]

    def asks_too(i):
        return next(results) if i == 2 else i

    results = ndx.parallel.map(asks_too, range(4), workers=1, buffersize=2)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(RuntimeError, match="function of a map asks .* itself"):
        next(results)


def test_an_iterable_that_closes_its_map():
    def closes():
        yield from range(4)
        results.close()
        yield 4

    results = ndx.parallel.map(abs, closes(), workers=1, buffersize=2)
    assert list(results) == [0, 1, 2]

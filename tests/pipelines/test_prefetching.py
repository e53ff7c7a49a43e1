"""Prefetching: batches come in order, in a ring, epoch after epoch."""

import contextvars
import sys
import threading
import time
import traceback

import numpy as np
import pytest
from helpers.prefetching import (
    ROADS,
    Numbers,
    check,
    every_road,
    item,
    no_thread_left,  # noqa: F401
    threads,
    wait_until,
)

import ndx

pytestmark = pytest.mark.threads


def test_batches_come_ahead_and_in_order():
    """A background thread makes up to `depth` batches before they are asked for."""
    source = Numbers(20)
    with ndx.prefetch(source, depth=8) as batches:
        iterator = iter(batches)
        check(next(iterator), 0)
        # Without another `next`, the producer comes to a stop after `depth` more.
        assert wait_until(lambda: batches.stats()["ready"] == 8)
        time.sleep(0.005)
        assert source.made == 9
        assert batches.stats()["ready"] == 8
        for i, batch in enumerate(iterator, 1):
            check(batch, i)
        assert i == 19


def test_what_the_source_makes_lies_in_its_slot():
    """Results of ndx are not copied, results of NumPy are."""
    places = []

    def source():
        for i in range(6):
            x = ndx.full(1000, float(i))
            places.append(np.asarray(x).ctypes.data)
            yield x, np.ones(3)

    with ndx.prefetch(source(), depth=1, slot_size="64KiB") as batches:
        for i, (x, y) in enumerate(batches):
            assert np.asarray(x).ctypes.data == places[i]
            assert isinstance(y, ndx.NDArray)
            assert 0 < np.asarray(y).ctypes.data - places[i] < 65536
        assert batches.stats()["spilled_batches"] == 0


def test_no_workspace_means_plain_memory():
    with ndx.prefetch(Numbers(10), workspace=None) as batches:
        kept = list(batches)
        for i, batch in enumerate(kept):
            check(batch, i)
        assert batches.stats()["bytes"] == batches.stats()["slots"] == 0


@every_road
def test_an_epoch_for_each_iteration(prefetch):
    """The same slots and the same thread serve all epochs; nothing new is taken."""
    source = Numbers(12)
    with prefetch(source, depth=3) as batches:
        assert len(batches) == 12
        for epoch in range(4):
            for i, batch in enumerate(batches):
                check(batch, i)
            assert i == 11
            del batch
            assert len(threads()) == (prefetch is ndx.prefetch)
            if epoch == 0:
                first = ndx.memory.stats("host")["system_allocations"]
        assert ndx.memory.stats("host")["system_allocations"] == first
        assert source.started == source.closed == 4
        stats = batches.stats()
        assert (stats["epochs"], stats["batches"]) == (4, 48)
        assert stats["slots"] <= 6
    assert "closed" in repr(batches)
    with pytest.raises(RuntimeError, match="closed"):
        iter(batches)


@every_road
def test_errors_come_where_they_belong_with_their_traceback(prefetch):
    def source():
        yield item(0)
        yield item(1)
        raise KeyError("file 2 is damaged")

    iterator = iter(prefetch(source()))
    check(next(iterator), 0)
    check(next(iterator), 1)
    with pytest.raises(KeyError, match="file 2 is damaged") as caught:
        next(iterator)
    lines = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[-1] == "source"
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)


@every_road
def test_an_error_of_iter_itself(prefetch):
    class Broken:
        def __iter__(self):
            raise OSError("no such folder")

    with pytest.raises(OSError, match="no such folder"):
        next(iter(prefetch(Broken())))


@every_road
def test_an_epoch_after_an_error(prefetch):
    attempts = []

    class Flaky:
        def __iter__(self):
            attempts.append(1)
            yield item(0)
            if len(attempts) == 1:
                raise ValueError("once")
            yield item(1)

    with prefetch(Flaky()) as batches:
        with pytest.raises(ValueError, match="once"):
            list(batches)
        for i, batch in enumerate(batches):
            check(batch, i)
        assert i == 1


@every_road
def test_an_iterator_has_one_epoch(prefetch):
    """As of a generator: to iterate again goes on, and no batch is lost."""
    batches = prefetch(iter(Numbers(10)), depth=4)
    for i, batch in enumerate(batches):
        check(batch, i)
        if i == 3:
            break
    for i, batch in enumerate(batches, 4):
        check(batch, i)
    assert i == 9
    assert list(batches) == []


@every_road
def test_a_newer_epoch_ends_the_older_one(prefetch):
    with prefetch(Numbers(10), depth=2) as batches:
        old = iter(batches)
        check(next(old), 0)
        new = iter(batches)
        check(next(new), 0)
        with pytest.raises(RuntimeError, match="a newer one has begun"):
            next(old)
        with pytest.raises(StopIteration):
            next(old)
        check(next(new), 1)
        assert sum(1 for _ in new) == 8
        iter(batches)
        # This one had come to its end.
        assert next(new, None) is None


def test_threads_may_share_an_iterator():
    iterator = iter(ndx.prefetch(Numbers(200), depth=4, on_held="grow"))
    taken = []

    def take():
        for batch in iterator:
            check(batch, batch["i"])
            taken.append(batch["i"])

    workers = [threading.Thread(target=take) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert sorted(taken) == list(range(200))


@pytest.mark.parametrize("road", ["thread", "no thread", "task"])
def test_the_backend_is_the_creators(road):
    def source():
        yield ndx.ones(3), ndx.current_backend()

    with ndx.use("host", limit="1MiB") as small:
        batches = ROADS[road](source())
    ((x, current),) = batches
    assert current is small
    assert x.backend is small


def test_the_context_is_the_creators():
    variable = contextvars.ContextVar("variable", default="outside")

    def source():
        yield variable.get(), threading.current_thread().name

    token = variable.set("inside")
    batches = ndx.prefetch(source())
    variable.reset(token)
    ((value, name),) = batches
    assert value == "inside"
    assert name.startswith("ndx-prefetch")


@every_road
def test_inside_a_workspace_of_the_consumer(prefetch):
    """It is composable: the batches are in no workspace, and outlive any scope."""
    with ndx.workspace("outer", size="1MiB") as outer:
        before = outer.stats()["cycle_bytes"]
        kept = []
        for i, batch in enumerate(prefetch(Numbers(6))):
            with ndx.workspace("inner"):
                y = batch["x"] + 1
                assert y.workspace == "inner"
            check(batch, i)
            kept.append(batch)
        assert outer.stats()["cycle_bytes"] == before
    for i, batch in enumerate(kept):
        check(batch, i)


def test_the_sources_own_workspace():
    """What is in another workspace is copied before its scope ends."""

    def source():
        for i in range(5):
            with ndx.workspace("decode"):
                x = ndx.full(10, float(i)) * 2
                result = x.leverage()
            yield result

    assert [float(x[0]) for x in ndx.prefetch(source())] == [0.0, 2.0, 4.0, 6.0, 8.0]


@every_road
@pytest.mark.parametrize(
    "scope",
    [
        lambda: ndx.workspace("open"),
        lambda: ndx.use("host", limit="1MiB"),
        ndx.no_workspace,
    ],
)
def test_a_source_that_leaves_a_scope_open(scope, prefetch):
    ended = []

    def source():
        try:
            with scope():
                for i in range(3):
                    yield ndx.full(4, float(i))
        finally:
            ended.append(True)

    with pytest.raises(ndx.WorkspaceError, match="inside a scope that it left open"):
        next(iter(prefetch(source())))
    assert ended == [True]
    # Without a ring, it may; but each batch of a loop without a task has a context.
    if prefetch is not ROADS["no task"]:
        batches = prefetch(source(), workspace=None)
        assert [float(x[1]) for x in batches] == [0.0, 1.0, 2.0]


def test_a_source_that_uses_one_buffer_for_all_batches():
    """Batches are made ahead, so that a buffer is copied before it is used again."""
    buffers = np.zeros(10), ndx.zeros(10)

    def source():
        for i in range(10):
            for buffer in buffers:
                buffer[...] = float(i)
            yield buffers

    for i, pair in enumerate(ndx.prefetch(source(), depth=4)):
        assert [x.tolist() for x in pair] == [[float(i)] * 10] * 2
    assert buffers[1].flags.writeable
    shared = ndx.ones(3)
    ((same,),) = ndx.prefetch([(shared,)], copy=False)
    assert same is shared


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"depth": 0}, ValueError, "depth=0 is not valid; it is from 1"),
        ({"depth": 10**9}, ValueError, "from 1 to 4096"),
        ({"depth": 2.5}, TypeError, "depth must be an int, not float"),
        ({"depth": True}, TypeError, "depth must be an int, not bool"),
        ({"slots": 1}, ValueError, "slots=1 is not valid; it is from 2"),
        ({"warmup": 0}, ValueError, "warmup=0"),
        ({"workspace": "rung"}, ValueError, "valid are 'ring', None"),
        ({"on_held": "cry"}, ValueError, "valid are 'wait', 'grow'"),
        ({"slot_size": "much"}, ValueError, "slot_size: size='much'"),
        ({"patience": -1}, ValueError, "patience=-1"),
        ({"patience": float("inf")}, ValueError, "for ever"),
        ({"patience": "x"}, ValueError, "patience='x'"),
        ({"copy": 1}, TypeError, "copy must be True or False"),
        ({"progress": 3}, TypeError, "progress must be"),
        ({"device": "mmap"}, ValueError, "it is a GPU"),
        ({"device": "gpu"}, ValueError, "unknown backend"),
        ({"slot": 3}, TypeError, "slot"),
    ],
)
def test_bad_options(options, error, message):
    with pytest.raises(error, match=message):
        ndx.prefetch([1], **options)
    assert not threads()


def test_repr_and_stats():
    batches = ndx.prefetch(Numbers(3), depth=5)
    assert repr(batches) == "<ndx.prefetch of Numbers, depth 5: not started>"
    assert batches.stats()["batches"] == 0
    assert len(list(batches)) == 3
    assert repr(batches).startswith("<ndx.prefetch of Numbers, depth 5: 0 ready, ")
    stats = batches.stats()
    assert (stats["batches"], stats["epochs"], stats["leased_slots"]) == (3, 1, 0)
    batches.close()
    assert repr(batches) == "<ndx.prefetch of Numbers, depth 5: closed>"
    with pytest.raises(RuntimeError, match="closed"):
        iter(batches)


def slowly(batches):
    """Return the first element of each batch, read when the next ones are there."""
    found = []
    for batch in batches:
        time.sleep(0.01)
        found.append(float(batch[0]))
    return found


def filling_part_of_a_buffer():
    buffer = ndx.zeros(1000)
    for i in range(4):
        buffer[...] = float(i)
        yield buffer[:10]


@pytest.mark.parametrize("wrap", [lambda source: source, ndx.no_prefetch])
def test_what_a_source_writes_to_what_it_has_yielded(wrap):
    """A part of a larger array is copied: the source may write to that."""
    assert slowly(ndx.prefetch(wrap(filling_part_of_a_buffer()))) == [0, 1, 2, 3]


WRITES = {
    "items": lambda x: x.__setitem__(..., 1.0),
    "an operator": lambda x: x.__imul__(2.0),
    "out=": lambda x: ndx.add(x, 1.0, out=x),
    "a ufunc of NumPy": lambda x: np.add(x, 1.0, out=x),
    "a method": lambda x: x.fill(1.0),
    "a view": lambda x: x[2:].__setitem__(0, 1.0),
}
BATCHES = {
    "an array": (lambda x: x, lambda batch: batch),
    "a dict": (lambda x: {"x": x, "y": np.ones(2)}, lambda batch: batch["x"]),
    "a tuple": (lambda x: (np.ones(2), [x]), lambda batch: batch[1][0]),
}


@pytest.mark.parametrize("wrap", [lambda source: source, ndx.no_prefetch])
@pytest.mark.parametrize("kind", BATCHES)
@pytest.mark.parametrize("way", WRITES)
def test_every_write_to_what_was_yielded_is_explained(way, kind, wrap):
    made, array_of = BATCHES[kind]

    def source():
        x = ndx.zeros(8)
        yield made(x)
        assert not x.flags.writeable
        WRITES[way](x)

    batches = iter(ndx.prefetch(wrap(source())))
    first = array_of(next(batches))
    with pytest.raises(ndx.ReadOnlyError) as caught:
        next(batches)
    assert "yield ndx.asarray(x, copy=True)" in caught.value.__notes__[0]
    assert first.tolist() == [0.0] * 8
    first += 1.0  # it is the consumer's


@pytest.mark.parametrize("kind", [ValueError, BufferError, TypeError])
def test_other_errors_of_a_source_are_not_explained_by_their_text(kind):
    def source():
        yield ndx.zeros(8)
        raise kind("the data base is read-only")

    batches = iter(ndx.prefetch(source()))
    next(batches)
    with pytest.raises(kind, match="data base") as caught:
        next(batches)
    assert not hasattr(caught.value, "__notes__")


def test_a_ready_batch_takes_three_frames_of_python():
    """The iterator's own, the signal to the producer, and the bar's."""
    with ndx.prefetch(Numbers(20), depth=4) as batches:
        iterator = iter(batches)
        next(iterator)
        assert wait_until(lambda: batches.stats()["ready"] == 4)
        frames = []

        def note(frame, event, argument):
            if event == "call":
                frames.append(frame.f_code.co_qualname)

        before = sys.getprofile()
        sys.setprofile(note)
        try:
            batch = next(iterator)
        finally:
            sys.setprofile(before)
        check(batch, 1)
        assert len(frames) <= 3, frames

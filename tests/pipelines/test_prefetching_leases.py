"""Leases: a slot is used again only when nothing of its batch is referenced."""

import contextlib
import gc
import threading
import time

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.prefetching import (
    Numbers,
    check,
    every_road,
    item,
    no_thread_left,  # noqa: F401
    wait_until,
)

import ndx

pytestmark = pytest.mark.threads


def held_by(batch, how):
    """Return what a consumer may keep of a batch."""
    x = batch["x"]
    return {
        "batch": lambda: batch,
        "array": lambda: x,
        "view": lambda: x[10:20],
        "view of a view": lambda: x[10:][:5],
        "numpy": lambda: np.asarray(x),
        "numpy's view": lambda: np.asarray(x)[::2],
        "buffer": lambda: memoryview(x),
        "capsule": lambda: np.from_dlpack(x),
    }[how]()


HOW = ["batch", "array", "view", "view of a view", "numpy", "numpy's view", "buffer",
       "capsule"]  # fmt: skip


def values_of(kept):
    if isinstance(kept, dict):
        kept = kept["x"]
    return set(np.asarray(kept).tolist())


@every_road
@pytest.mark.parametrize("how", HOW)
def test_a_batch_is_valid_for_as_long_as_it_is_kept(how, prefetch):
    """No rule of "use it before the next one": nothing goes stale or is overwritten."""
    kept = {}
    with prefetch(Numbers(60), depth=2) as batches:
        for i, batch in enumerate(batches):
            if i in (3, 7, 20):
                kept[i] = held_by(batch, how)
            for number, part in kept.items():
                assert values_of(part) == {float(number)}
    # After the end, too.
    for number, part in kept.items():
        assert values_of(part) == {float(number)}


@pytest.mark.parametrize("how", HOW)
def test_a_held_slot_is_not_filled(how):
    """Wrong results by slots that are filled under the consumer's hands can't be."""
    source = Numbers(1000, size=500)
    with ndx.prefetch(source, depth=2, slots=4, slot_size="16KiB") as batches:
        iterator = iter(batches)
        kept = [held_by(next(iterator), how) for _ in range(2)]
        # All four slots are taken: the two that are kept, and the two ahead.
        assert wait_until(lambda: batches.stats()["ready"] == 2)
        assert batches.stats()["leased_slots"] == 4
        time.sleep(0.003)
        assert source.made == 4
        assert [values_of(part) for part in kept] == [{0.0}, {1.0}]
        kept.pop(0)
        check(next(iterator), 2)
        # The producer finds the slot that was released, without another `next`.
        assert wait_until(lambda: source.made >= 5)
        assert values_of(kept[0]) == {1.0}


@every_road
def test_who_keeps_all_batches_gets_an_error(prefetch):
    """Nobody can release a slot: an error at once, or as soon as patience ends."""
    with prefetch(Numbers(100), depth=2, patience=0.05) as batches:
        kept = []
        start = time.monotonic()
        with pytest.raises(ndx.WorkspaceError, match="all 5 slots") as caught:
            kept.extend(batches)
        assert time.monotonic() - start < 20
        for text in ("on_held='grow'", "slots=", "copy=True"):
            assert text in str(caught.value)
        for i, batch in enumerate(kept):
            check(batch, i)
        # The warm-up's batches are in no slot.
        assert 5 - 1 <= len(kept) <= 5 + 3
        # The next epoch can begin as soon as they are dropped.
        del kept, batch, caught
        assert sum(1 for _ in batches) == 100


@every_road
def test_the_error_ends_the_epoch(prefetch):
    source = Numbers(100)
    with prefetch(source, depth=1, slots=2, warmup=1, patience=0) as batches:
        iterator = iter(batches)
        kept = []
        with pytest.raises(ndx.WorkspaceError, match="all 2 slots"):
            kept.extend(iterator)
        assert wait_until(lambda: source.closed == 1)
        assert list(iterator) == []
        for i, batch in enumerate(kept):
            check(batch, i)


def test_patience_is_for_other_threads():
    """Another thread may release a batch while the consumer waits."""
    source = Numbers(40)
    kept = []
    going_on = threading.Event()

    def release():
        going_on.wait(20)
        for _ in range(4):
            time.sleep(0.001)
            if wait_until(lambda: kept):
                kept.pop(0)

    helper = threading.Thread(target=release)
    helper.start()
    count = 0
    with ndx.prefetch(source, depth=1, slots=3, slot_size="8KiB") as batches:
        for batch in batches:
            check(batch, count)
            count += 1
            if count < 5:
                kept.append(batch)
            if len(kept) == 2:
                going_on.set()
    going_on.set()
    helper.join()
    assert count == 40


@every_road
def test_a_ring_that_grows_and_shrinks(prefetch):
    with prefetch(Numbers(40), depth=2, on_held="grow", slot_size="8KiB") as batches:
        kept = list(batches)
        for i, batch in enumerate(kept):
            check(batch, i)
        assert batches.stats()["slots"] >= 40
        assert batches.stats()["grown"] >= 35
        del kept, batch
        for _ in range(2):
            for i, batch in enumerate(batches):
                check(batch, i)
        assert batches.stats()["slots"] <= 2 + 3


def test_a_ring_of_very_many_slots():
    """All are found in the end, though only some are looked at each time."""
    with ndx.prefetch(range(0), depth=1) as none:
        assert list(none) == []
    source = [np.full(2, float(i)) for i in range(500)]
    with ndx.prefetch(source, depth=1, on_held="grow", slot_size=64) as batches:
        kept = list(batches)
        assert [float(x[0]) for x in kept] == list(range(500))
        assert batches.stats()["slots"] >= 500
        kept.clear()
        for _ in range(3):
            for x in batches:
                assert x.size == 2
        del x
        assert batches.stats()["slots"] <= 4
    with ndx.prefetch(source, depth=1, slots=300, slot_size=64, patience=0) as batches:
        kept = []
        with pytest.raises(ndx.WorkspaceError, match="all 300 slots"):
            kept.extend(batches)
        assert len(kept) == 300
        del kept


def test_a_cycle_of_references_is_collected_before_the_error():
    with ndx.prefetch(
        Numbers(30), depth=1, slots=3, slot_size="8KiB", patience=0
    ) as batches:
        gc.disable()
        try:
            for i, batch in enumerate(batches):
                check(batch, i)
                ring = [batch]
                ring.append(ring)
        finally:
            gc.enable()
        assert i == 29


def test_what_the_source_keeps_is_leased_too():
    """A source's cache of what it has yielded takes slots; a private one does not."""

    def caching(public):
        cache = []
        for i in range(30):
            x = ndx.full(100, float(i))
            y = x + 1
            cache.append(y if public else x)
            yield y
            for number, each in enumerate(cache):
                assert float(each[0]) == number + public

    options = {"depth": 1, "slot_size": "8KiB", "patience": 0}
    assert [float(y[0]) for y in ndx.prefetch(caching(False), **options)] == [
        float(i) for i in range(1, 31)
    ]
    with pytest.raises(ndx.WorkspaceError, match="in the source"):
        for _ in ndx.prefetch(caching(True), **options):
            pass


def test_workspaces_that_are_destroyed_by_others():
    """`destroy_all(all_threads=True)` takes slots away; batches stay valid."""
    with ndx.prefetch(Numbers(60), depth=2) as batches:
        for i, batch in enumerate(batches):
            check(batch, i)
            if i % 7 == 0:
                # Those in which a batch is made just then are left alone.
                with contextlib.suppress(ndx.WorkspaceError):
                    ndx.memory.destroy_all(all_threads=True)
            check(batch, i)
        assert i == 59


@pytest.mark.parametrize("mode", ["spill", "bypass"])
def test_debug_modes_of_workspaces(mode):
    ndx.memory.debug_mode(mode)
    try:
        for i, batch in enumerate(ndx.prefetch(Numbers(20), depth=2)):
            check(batch, i)
        assert i == 19
    finally:
        ndx.memory.debug_mode("off")


def test_memory_that_is_short():
    """At the backend's limit: batches are spilled, or an OutOfMemoryError comes."""

    def source():
        for i in range(20):
            yield ndx.full(2000, float(i)), i

    with ndx.use("host", limit="200KiB") as small:
        batches = ndx.prefetch(source(), depth=3, slots=6)
        for x, i in batches:
            assert float(x[5]) == i
        assert small.stats()["reserved_bytes"] <= 200 * 1024
        del x
        batches.close()
        batches = ndx.prefetch(source(), depth=3, slot_size="1MiB")
        for x, i in batches:
            assert float(x[5]) == i
        del x
        batches.close()
        with pytest.raises(ndx.OutOfMemoryError):
            list(ndx.prefetch(ndx.zeros(10**6) for _ in range(3)))


def test_one_item_twice():
    """A source that yields the same object again and again."""
    same = item(1)
    for batch in ndx.prefetch([same] * 20, depth=3):
        assert set(batch["x"].tolist()) == {1.0}
        assert batch is not same


def test_a_prefetch_that_rests_makes_nobody_wait():
    """Its producer can't release the batch that is wanted: the error comes at once.

    In a process of its own: other libraries' threads could release it.
    """
    printed = run_python(
        """
        import time, ndx

        source = [ndx.ones(100)] * 100
        with (
            ndx.prefetch(source, depth=1) as resting,
            ndx.prefetch(source, depth=2, patience=100) as batches,
        ):
            others = iter(resting)
            next(others)
            kept = []
            start = time.monotonic()
            try:
                kept.extend(batches)
            except ndx.WorkspaceError as error:
                print("all 5 slots" in str(error), time.monotonic() - start < 50)
            next(others)
        """
    )
    assert printed.split() == ["True", "True"]


@pytest.mark.parametrize("mark", [iter, ndx.no_prefetch])
def test_a_source_that_asks_its_own_prefetch(mark):
    has_iterator = threading.Event()

    def source():
        yield 1
        has_iterator.wait(60)
        yield next(iterator)

    with ndx.prefetch(mark(source())) as batches:
        iterator = iter(batches)
        has_iterator.set()
        assert next(iterator) == 1
        with pytest.raises(RuntimeError, match="would wait for itself"):
            next(iterator)

"""The sizes of slots: learned, given, and adapted."""

import numpy as np
import pytest
from helpers.prefetching import no_thread_left  # noqa: F401
from hypothesis import given
from hypothesis import strategies as st

import ndx
from ndx._pipelines.leases import slot_sizing

pytestmark = pytest.mark.threads

LINE = 64


def series(sizes):
    """Return a source of batches of so many KiB."""
    for i, size in enumerate(sizes):
        yield i, np.full(size * 128, float(i))


def run(sizes, **options):
    """Prefetch batches of so many KiB; return the counters."""
    with ndx.prefetch(series(sizes), depth=2, **options) as batches:
        for (i, x), size in zip(batches, sizes, strict=True):
            assert x.shape == (size * 128,)
            assert (np.asarray(x) == i).all()
        return batches.stats()


def test_a_slot_is_as_large_as_the_first_batch_and_a_margin():
    """The first item times 1.3; the ring as many slots as there are batches ahead."""
    stats = run([10] * 50, warmup=1)
    assert stats["slot_bytes"] == int(10 * 1024 * 1.3)
    assert stats["spilled_batches"] <= 1 + 2
    assert stats["slots"] <= 2 + 3
    assert stats["bytes"] <= stats["slots"] * (stats["slot_bytes"] + LINE)


def test_slots_follow_the_sizes():
    """Series of variable length: slots grow when longer ones come, and shrink again."""
    grown = run([4] * 10 + [7] * 10)
    assert grown["slot_bytes"] == int(7 * 1024 * 1.3)
    assert grown["size_changes"] == 1
    shrunk = run([40] * 10 + [4] * 60)
    assert shrunk["slot_bytes"] == int(4 * 1024 * 1.3)
    assert shrunk["bytes"] <= 5 * (shrunk["slot_bytes"] + LINE)


def test_the_most_of_the_warm_up():
    """`warmup=k`: the most that the first k batches needed; an outlier is left out."""
    assert run([4, 6, 5, 4, 4, 4], warmup=3)["slot_bytes"] == int(6 * 1024 * 1.3)
    assert run([4, 6, 9, 4, 4, 4], warmup=2)["slot_bytes"] == int(9 * 1024 * 1.3)
    # A huge allocation in the first `next` does not make all slots huge.
    stats = run([900, 4, 4, 4, 4, 4])
    assert stats["slot_bytes"] == int(4 * 1024 * 1.3)


def test_a_given_size_is_exact():
    stats = run([4, 40, 4, 4, 4], slot_size="8KiB")
    assert stats["slot_bytes"] == 8192
    assert stats["spilled_batches"] == 1
    assert stats["spilled_bytes"] == 40 * 1024
    assert stats["size_changes"] == 0


def test_outliers_are_spilled_and_do_not_inflate_the_ring():
    sizes = [4] * 200
    for at in range(20, 200, 40):
        sizes[at] = 400
    stats = run(sizes)
    assert stats["slot_bytes"] == int(4 * 1024 * 1.3)
    assert 5 <= stats["spilled_batches"] <= 5 + 3 + 3


def test_varying_sizes_do_not_grow_memory():
    """Each new size takes a place that an earlier one had: memory stays bounded."""
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 64, size=1500).tolist()
    with ndx.use("host", limit="64MiB") as backend:
        with ndx.prefetch(series(sizes), depth=2) as batches:
            reserved = []
            for i, x in batches:
                assert float(x[0]) == i
                reserved.append(backend.stats()["reserved_bytes"])
            assert batches.stats()["bytes"] <= 5 * (64 * 1024 * 1.3 + LINE)
            del x
        # Five slots of the largest size, and what the first batches took.
        assert max(reserved) <= 5 * 64 * 1024 * 1.3 + 20 * 64 * 1024
        assert max(reserved[300:]) <= max(*reserved[:300], 5 * 64 * 1024 * 1.3)


def test_sources_without_arrays():
    with ndx.prefetch(range(100)) as batches:
        assert list(batches) == list(range(100))
        assert batches.stats()["bytes"] == 0


@pytest.mark.parametrize("size", [0, 1])
def test_arrays_without_elements(size):
    for x, y in ndx.prefetch([(np.zeros(size), ndx.zeros((size, 3)))] * 20):
        assert (x.shape, y.shape) == ((size,), (size, 3))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200), st.integers(1, 50))
def test_a_size_is_bounded_by_what_was_needed(needs, warmup):
    size = slot_sizing(warmup, 0)
    for count, need in enumerate(needs, 1):
        size.observe(need)
        recent = needs[max(0, count - max(32, warmup)) : count]
        if count < warmup:
            assert size.wanted == 0
            continue
        assert size.wanted <= int(1.3 * max(needs[:count]))
        if len(recent) == max(32, warmup):
            assert size.wanted <= max(2 * 1.3 * max(recent), int(1.3 * max(recent)))


def test_slots_lie_in_the_backend_of_the_source_alone():
    first, second = (ndx.backends.get("host", limit=n) for n in ("64MiB", "65MiB"))
    with ndx.use(first):
        batches = ndx.prefetch(series([10] * 20), depth=2)
    with ndx.use(second), batches:
        before = ndx.memory.stats("host")["allocated_bytes"]
        assert all(x.backend is first for _, x in batches)
        assert ndx.memory.stats("host")["allocated_bytes"] == before
        assert second.stats()["reserved_bytes"] == 0

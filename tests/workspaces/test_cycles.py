"""What an arena does from cycle to cycle: sizes, learning, spilling, statistics."""

import gc

import numpy as np
import pytest
from helpers.threads import in_thread
from hypothesis import given
from hypothesis import strategies as st

import ndx

KIB = 1024


@pytest.fixture
def backend():
    return ndx.backends.get("host", limit="64MiB")


def rounded(nbytes):
    return -(-nbytes // 64) * 64


def addresses(arrays):
    return [np.asarray(x).__array_interface__["data"][0] for x in arrays]


# ---- learning ----------------------------------------------------------------


def test_the_first_cycle_decides_the_size(backend):
    workspace = ndx.workspace(backend=backend)
    assert workspace.size == 0
    with workspace:
        x = ndx.zeros(1000)
        y = x + 1
        stats = workspace.stats()
        assert stats["spilled_count"] == stats["total_spills"] == 2
        assert stats["spilled_bytes"] == stats["cycle_bytes"] == 2 * 8000
        assert y.backend is backend
        assert backend.stats()["allocated_count"] == 2
    assert workspace.size == rounded(int(16000 * 1.3))
    assert backend.stats()["allocated_count"] == 1
    assert backend.stats()["allocated_bytes"] == workspace.size
    for _ in range(5):
        before = backend.stats()["total_allocations"]
        with workspace:
            x = ndx.zeros(1000)
            y = x + 1
            assert workspace.stats()["spilled_count"] == 0
            assert workspace.stats()["offset"] == 16000
        assert backend.stats()["total_allocations"] == before
    assert workspace.stats()["total_spills"] == 2


def test_overallocation_of_zero_is_strict(backend):
    workspace = ndx.workspace(backend=backend, overallocation=0)
    for count in (10, 10, 20):
        with workspace:
            ndx.zeros(count)
    assert workspace.size == 128
    assert workspace.stats()["spilled_count"] == 1


def test_an_empty_first_cycle_decides_nothing(backend):
    workspace = ndx.workspace(backend=backend)
    with workspace:
        ndx.zeros(0)
    assert workspace.size == 0
    with workspace:
        ndx.zeros(100)
    assert workspace.size > 0


def test_learn_none_never_has_an_arena(backend):
    workspace = ndx.workspace(backend=backend, learn="none")
    for cycle in range(3):
        with workspace:
            x = ndx.zeros(100)
            assert workspace.stats()["spilled_count"] == 1
            assert x.in_scope
        assert workspace.size == 0
        assert workspace.stats()["total_spills"] == cycle + 1
        assert backend.stats()["allocated_bytes"] == 0
    with pytest.raises(ndx.StaleArrayError):
        x + 1


def test_a_sized_arena_is_had_at_once(backend):
    workspace = ndx.workspace(backend=backend, size="10KiB")
    assert workspace.size == 10 * KIB
    assert backend.stats()["allocated_bytes"] == 10 * KIB
    with workspace:
        ndx.zeros(1000)
        assert workspace.stats()["spilled_count"] == 0
        ndx.zeros(1000)
        assert workspace.stats()["spilled_count"] == 1
    assert workspace.size == 10 * KIB


def test_a_learned_size_that_cannot_be_had_is_asked_for_again():
    backend = ndx.backends.get("host", limit=64 * KIB)
    workspace = ndx.workspace(backend=backend, overallocation=1)
    with ndx.use(backend):
        kept = ndx.zeros(32 * KIB, dtype="uint8")
    with workspace:
        ndx.zeros(20 * KIB, dtype="uint8")
    assert workspace.size == 0
    assert not workspace.is_open
    del kept
    with workspace:
        ndx.zeros(20 * KIB, dtype="uint8")
    assert workspace.size == 40 * KIB


# ---- placing -----------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 700), st.sampled_from(["zeros", "ones", "empty"])),
        max_size=40,
    )
)
def test_arrays_of_a_cycle_are_apart_and_right(requests):
    workspace = ndx.workspace(size=16 * KIB)
    for _ in range(2):
        with workspace:
            arrays = []
            for number, (size, how) in enumerate(requests):
                x = getattr(ndx, how)(size)
                if how != "empty":
                    assert (np.asarray(x) == (how == "ones")).all()
                x[...] = float(number)
                arrays.append(x)
            starts = addresses(arrays)
            assert all(start % 64 == 0 for start in starts)
            for number, x in enumerate(arrays):
                assert (np.asarray(x) == number).all()
            stats = workspace.stats()
            asked = [rounded(8 * size) for size, _ in requests]
            assert stats["cycle_bytes"] == sum(asked)
            assert stats["offset"] + stats["spilled_bytes"] == sum(asked)


@given(st.data())
def test_kept_views_never_change(data):
    """Cycles that keep some views and drop others, against a model of the values."""
    workspace = ndx.workspace(size=8 * KIB)
    kept = {}
    number = 0
    for _ in range(data.draw(st.integers(1, 8))):
        for key in sorted(kept):
            if data.draw(st.booleans()):
                del kept[key]
        with workspace:
            for _ in range(data.draw(st.integers(0, 8))):
                number += 1
                size = data.draw(st.sampled_from([1, 8, 9, 100, 300, 1000]))
                x = ndx.full(size, float(number))
                start = data.draw(st.integers(0, size - 1))
                stop = data.draw(st.integers(start, size))
                if data.draw(st.booleans()):
                    kept[number] = np.asarray(x[start:stop])
        for value in kept:
            assert (kept[value] == value).all()
    kept.clear()
    assert workspace.stats()["pinned_count"] == 0
    with workspace:
        ndx.zeros(8 * KIB, dtype="uint8")
        assert workspace.stats()["spilled_count"] == 0


def test_addresses_repeat_from_cycle_to_cycle():
    workspace = ndx.workspace(size=8 * KIB)
    seen = set()
    for _ in range(3):
        with workspace:
            seen.add(tuple(addresses([ndx.zeros(n) for n in (1, 100, 3)])))
    assert len(seen) == 1


# ---- spilling ----------------------------------------------------------------


@in_thread
def test_spill_fail(backend):
    workspace = ndx.workspace("full up", backend=backend, size=KIB, spill="fail")
    with workspace:
        x = ndx.ones(64)
        before = workspace.stats(), backend.stats()
        with pytest.raises(ndx.OutOfMemoryError, match="'full up' is full") as caught:
            ndx.zeros(100)
        assert (workspace.stats(), backend.stats()) == before
        y = x + 1
        assert y.tolist() == [2.0] * 64
    error = caught.value
    assert error.requested == 800
    assert error.allocated == 512
    assert error.limit == KIB
    for part in ("800 B", "512 B", "1 KiB", "size=", "spill='external'"):
        assert part in str(error)


@in_thread
def test_spill_fail_names_what_past_cycles_hold(backend):
    workspace = ndx.workspace("held", backend=backend, size=KIB, spill="fail")
    with workspace:
        view = np.asarray(ndx.ones(64))
    with workspace, pytest.raises(ndx.OutOfMemoryError, match=r"512 B pinned .* drop"):
        ndx.zeros(100)
    del view
    with workspace:
        ndx.zeros(100)


def test_spill_fail_serves_while_the_size_is_learned(backend):
    workspace = ndx.workspace(backend=backend, spill="fail", overallocation=0)
    with workspace:
        ndx.zeros(100)
    with workspace:
        ndx.zeros(100)
        with pytest.raises(ndx.OutOfMemoryError):
            ndx.zeros(100)


def test_spilled_arrays_are_freed_at_the_end_at_the_latest(backend):
    workspace = ndx.workspace(backend=backend, size=KIB)
    with workspace:
        x = ndx.zeros(1000)
        y = ndx.zeros(1000)
        assert backend.stats()["allocated_count"] == 3
        del x
        assert backend.stats()["allocated_count"] == 2
    assert backend.stats()["allocated_count"] == 1
    assert not y.in_scope


def test_a_spill_beyond_the_limit_changes_nothing():
    backend = ndx.backends.get("host", limit=8 * KIB)
    workspace = ndx.workspace(backend=backend, size=4 * KIB)
    with workspace:
        x = ndx.ones(10)
        before = workspace.stats(), backend.stats()
        with pytest.raises(ndx.OutOfMemoryError, match="its limit is 8 KiB"):
            ndx.zeros(KIB)
        assert (workspace.stats(), backend.stats()) == before
        assert x.tolist() == [1.0] * 10


# ---- statistics, life --------------------------------------------------------


@in_thread
def test_stats_and_repr(backend):
    workspace = ndx.workspace("shown", backend=backend, size=KIB)
    assert repr(workspace) == "<Workspace 'shown': 1 KiB, closed, generation 1>"
    assert workspace.backend is backend
    with workspace:
        assert workspace.is_open
        ndx.zeros(9)
        assert repr(workspace) == "<Workspace 'shown': 1 KiB, open, generation 1>"
        assert workspace.stats() == {
            "size": KIB, "mirror_bytes": 0, "offset": 128, "cycles": 0, "generation": 1,
            "cycle_bytes": 128, "last_cycle_bytes": 0, "max_cycle_bytes": 0,
            "spilled_count": 0, "spilled_bytes": 0, "total_spills": 0,
            "pinned_count": 0, "pinned_bytes": 0, "retired_bytes": 0, "slot": 0,
            "live_bytes": 0, "peak_live_bytes": 128, "departures": 0,
            "escaped_count": 0, "escaped_bytes": 0,
        }  # fmt: skip
    assert not workspace.is_open
    stats = workspace.stats()
    assert (stats["cycles"], stats["generation"], stats["offset"]) == (1, 2, 0)
    assert stats["cycle_bytes"] == stats["last_cycle_bytes"] == 128
    with workspace:
        ndx.zeros(1)
    stats = workspace.stats()
    assert (stats["last_cycle_bytes"], stats["max_cycle_bytes"]) == (64, 128)
    assert workspace.generation == 3


def test_a_workspace_that_is_gone_gives_its_arena_back(backend):
    workspace = ndx.workspace(backend=backend, size="1MiB")
    with workspace:
        x = ndx.ones(10)
        kept = np.asarray(ndx.full(10, 3.0))
    del workspace
    gc.collect()
    # The arena stays for what is still read.
    assert backend.stats()["allocated_bytes"] == 2**20
    assert kept.tolist() == [3.0] * 10
    del kept
    assert backend.stats()["allocated_bytes"] == 0
    assert repr(x).startswith("<stale NDArray")
    with pytest.raises(ndx.StaleArrayError):
        x + 1


def test_detach():
    backend = ndx.backends.get("host", limit="1MiB")
    outside = ndx.current_backend()
    with ndx.workspace(backend=backend, size="64KiB"):
        x = ndx.asarray(np.arange(12.0).reshape(3, 4), copy=True)
        kept = [x.detach(), x.T.detach(), x[::2, 1].detach(), ndx.sum(x).detach()]
        assert x.attached
        assert x.workspace is not None
        for y in kept:
            assert not y.attached
            assert y.workspace is None
            assert y.backend is outside
            assert y.detach() is y
    expected = np.arange(12.0).reshape(3, 4)
    for y, z in zip(kept, [expected, expected.T, expected[::2, 1], 66.0], strict=True):
        np.testing.assert_array_equal(np.asarray(y), z)
    # The order in memory is kept.
    assert kept[1].strides == (8, 32)


@in_thread
def test_results_keep_going_into_the_arena():
    backend = ndx.backends.get("host", limit="1MiB")
    outside = ndx.ones((4, 4))
    with ndx.workspace("place", backend=backend, size="64KiB"):
        results = [
            outside + 1, outside @ outside, ndx.exp(outside), ndx.sum(outside),
            outside[[0, 1]], ndx.arange(3), ndx.asarray([1, 2]), outside == outside,
            ndx.zeros(3), ndx.asarray(np.ones(3), copy=True), np.exp(outside),
            np.cbrt(outside), ndx.mean(outside, axis=0), ndx.linspace(0, 1, 5),
        ]  # fmt: skip
        for x in results:
            assert x.attached
            assert x.workspace == "place"
            assert x.backend is backend
        assert not outside[1:].attached
        assert not outside.T.attached
    assert not any(x.in_scope for x in results)

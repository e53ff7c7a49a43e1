"""Rings, as ND4J's tests of circular workspaces have them, in our words.

What differs: each slot has an arena of its own, of exactly the learned size (ND4J adds
8 B to its blocks and pads a cursor in one range); what overflows a slot is spilled and
lives until that slot's turn, as all else in it (ND4J's "pinned", for three turns);
and arrays that are kept too long raise, rather than change silently.
"""

import pytest
from helpers.nd4j import MIB, cycle, lines, offset, spilled, up

import ndx

RING = {"reset": "ring", "slots": 4}
SLOT = up(1.3 * 2 * lines(500))


@pytest.fixture
def backend():
    return ndx.backends.get("host", limit="256MiB")


def held(backend):
    """Return how many ranges are held: an arena for each slot, and what spilled."""
    return backend.stats()["allocated_count"]


def test_the_first_cycle_decides_the_size_of_all_slots(backend):
    workspace = ndx.workspace(**RING, backend=backend)
    with workspace:
        kept = [ndx.full(500, 1.0), ndx.full(500, 2.0)]
        assert spilled(workspace) == (2, 2 * lines(500))
        assert workspace.size == 0
        assert workspace.stats()["slot"] == 0
    for turn in (1, 2, 3):
        # What spilled stays valid, as all of its slot.
        assert [float(x[0]) for x in kept] == [1.0, 2.0]
        cycle(workspace, 500, 500)
        assert workspace.stats()["slot"] == turn
        assert spilled(workspace) == (0, 0)
    cycle(workspace, 500, 500)
    assert workspace.stats()["slot"] == 0
    assert workspace.size == 4 * SLOT
    assert held(backend) == 4
    assert not any(x.in_scope for x in kept)


def test_a_larger_cycle_is_spilled_and_kept_for_a_turn(backend):
    workspace = ndx.workspace(**RING, backend=backend)
    for _ in range(5):
        cycle(workspace, 500, 500)
    with workspace:
        large = ndx.full(2000, 3.0)
        assert spilled(workspace) == (1, lines(2000))
        assert offset(workspace) == 0
    assert workspace.size == 4 * SLOT
    for number in range(16):
        assert held(backend) == (5 if number < 4 else 4)
        assert large.in_scope == (number < 4)
        if large.in_scope:
            assert float(ndx.sum(large)) == 6000.0
        with workspace:
            first = ndx.full(500, 1.0)
            second = ndx.full(500, 2.0)
            assert offset(workspace) == 2 * lines(500)
            assert workspace.stats()["slot"] == (number + 2) % 4
            assert (float(first[0]), float(second[-1])) == (1.0, 2.0)
            assert spilled(workspace) == (0, 0)
    assert workspace.size == 4 * SLOT


def test_many_larger_cycles_and_normal_ones_after(backend):
    workspace = ndx.workspace(**RING, backend=backend)
    cycle(workspace, 500, 500)
    kept = []
    for _ in range(100):
        kept.append(cycle(workspace, 750, 750))
        assert workspace.stats()["last_cycle_bytes"] == 2 * lines(750)
        assert spilled(workspace) == (1, lines(750))
    # Of the last turn; those before went with their slots' cycles.
    assert held(backend) == 8
    for _ in range(100):
        kept.append(cycle(workspace, 500, 500))
        assert spilled(workspace) == (0, 0)
    stats = workspace.stats()
    assert stats["pinned_count"] == stats["retired_bytes"] == 0
    assert stats["total_spills"] == 102
    assert held(backend) == 4
    assert workspace.size == 4 * SLOT


def test_a_ring_that_grows(backend):
    workspace = ndx.workspace(**RING, backend=backend, spill="grow")
    for _ in range(5):
        cycle(workspace, 500, 500)
    assert workspace.size == 4 * SLOT
    larger = up(1.3 * lines(2000))
    for number in range(100):
        with workspace:
            ndx.ones(2000)
            # The next slot that starts is large enough, rather than all after 11.
            assert spilled(workspace)[0] == (number == 0)
    assert workspace.size == 4 * larger
    assert held(backend) == 4
    assert backend.stats()["allocated_bytes"] == 4 * larger


def test_a_ring_that_learns_over_time():
    workspace = ndx.workspace(
        reset="ring", slots=5, learn="over-time", cycles=5, overallocation=0
    )
    for number in range(1, 6):
        assert workspace.size == 0
        cycle(workspace, 20 * number)
        assert spilled(workspace)[0] == 1
    for _ in range(5):
        cycle(workspace, 100)
        assert spilled(workspace) == (0, 0)
    assert workspace.size == 5 * lines(100)


def test_a_ring_that_is_initialized():
    workspace = ndx.workspace(
        reset="ring", slots=3, learn="over-time", overallocation=0
    )
    cycle(workspace, 100)
    workspace.initialize()
    for _ in range(3):
        cycle(workspace, 100)
        assert spilled(workspace) == (0, 0)
    assert workspace.size == 3 * lines(100)


def test_the_least_size_of_a_slot(backend):
    workspace = ndx.workspace(
        reset="ring", slots=2, min_size="10MiB", overallocation=0, backend=backend
    )
    with workspace:
        x = ndx.full(100, 1.0)
        assert spilled(workspace) == (1, lines(100))
        assert workspace.size == 0
    assert offset(workspace) in (0, lines(100))
    with workspace:
        y = ndx.full(100, 2.0)
        assert offset(workspace) == lines(100)
        assert x.in_scope
    assert held(backend) == 2
    cycle(workspace, 100)
    assert workspace.size == 20 * MIB
    assert held(backend) == 2
    assert (x.in_scope, y.in_scope) == (False, True)

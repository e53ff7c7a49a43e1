"""How a size is found and grows, as ND4J's tests have it, in our words."""

from helpers.nd4j import L1, LT, MIB, cycle, lines, offset, spilled, up

import ndx


def test_the_least_size_of_a_learned_arena():
    workspace = ndx.workspace(min_size="10MiB", overallocation=1.0)
    with workspace:
        ndx.zeros(100)
        assert workspace.size == 0
    with workspace:
        ndx.zeros(100)
        assert workspace.size == 10 * MIB


def test_the_largest_size_of_a_learned_arena():
    workspace = ndx.workspace(max_size=lines(100), overallocation=1.0)
    for _ in range(3):
        cycle(workspace, 90, 90)
    # What is beyond it is spilled.
    assert workspace.size == lines(100)
    assert spilled(workspace) == (1, lines(90))


def test_what_is_made_out_of_the_workspace_is_not_learned():
    """ND4J switches the workspace off and on; that is what ``no_workspace`` is for."""
    workspace = ndx.workspace(**L1)
    for _ in range(2):
        with workspace:
            x = ndx.ones(100)
            with ndx.no_workspace():
                between = ndx.ones(1000)
            y = ndx.ones(100)
            assert float(ndx.sum(between[:100] + x + y)) == 300.0
    # The sum and its operands are temporaries of the cycle, too.
    assert workspace.size == 4 * lines(100) + lines(1)
    with workspace:
        ndx.ones(100)
        assert offset(workspace) == lines(100)
        with ndx.no_workspace():
            ndx.ones(100)
        ndx.ones(100)
        assert offset(workspace) == 2 * lines(100)


def test_over_time_learns_from_100_cycles():
    workspace = ndx.workspace(**LT)
    for number in range(1, 101):
        with workspace:
            ndx.ones(number)
            assert offset(workspace) == workspace.size == 0
        assert workspace.size == 0
    workspace.initialize()
    assert offset(workspace) == 0
    assert workspace.size == lines(100)
    with workspace:
        ndx.ones(100)
        assert offset(workspace) == lines(100)
        assert spilled(workspace) == (0, 0)


def test_grow_over_time():
    workspace = ndx.workspace(**LT, spill="grow")
    for count in (100, 200, 300):
        cycle(workspace, count)
    workspace.initialize()
    assert workspace.size == lines(300)
    for count in range(1000, 0, -100):
        cycle(workspace, count)
    workspace.initialize()
    # The most; it never shrinks.
    assert workspace.size == lines(1000)


def test_grow_after_some_cycles():
    workspace = ndx.workspace(**LT, cycles=3, spill="grow")
    sizes = []
    for count in range(100, 1100, 100):
        cycle(workspace, count)
        sizes.append(workspace.size)
    assert sizes == [0, 0, *(lines(count) for count in range(300, 1100, 100))]


def test_grow_then_allocate():
    workspace = ndx.workspace(**L1, spill="grow")
    cycle(workspace, 100)
    cycle(workspace, 1000)
    assert workspace.stats()["max_cycle_bytes"] == lines(1000)
    workspace.initialize()
    assert workspace.size == lines(1000)
    with workspace:
        x = ndx.full(500, 2.0)
        assert offset(workspace) == lines(500)
        assert float(ndx.sum(x)) == 1000.0


def test_growth_has_a_margin_each_time():
    """ND4J adds its margin once only, so that each larger cycle grows the arena."""
    workspace = ndx.workspace(overallocation=0.5, spill="grow")
    for count in (100, 1000):
        cycle(workspace, count)
        assert workspace.size == up(1.5 * lines(count))


def test_a_learned_size_stays():
    workspace = ndx.workspace(**LT)
    cycle(workspace, 100)
    workspace.initialize()
    assert workspace.size == lines(100)
    cycle(workspace, 1000)
    assert spilled(workspace) == (1, lines(1000))
    workspace.initialize()
    assert workspace.size == lines(100)


def test_inner_cycles_are_learned_over_time():
    inner = ndx.workspace(**LT)
    with ndx.workspace(**L1):
        for number in range(1, 101):
            cycle(inner, number)
            assert inner.stats()["last_cycle_bytes"] == lines(number)
            assert inner.size == 0
        inner.initialize()
    assert inner.size == lines(100)

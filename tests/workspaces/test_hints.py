"""Mistakes with workspaces that cost memory or time in silence are told once."""

import logging

import pytest

import ndx


@pytest.fixture
def told(caplog):
    """Return what gives the warnings so far."""
    caplog.set_level(logging.WARNING, logger="ndx")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_workspace_that_is_made_anew_for_each_cycle(told):
    for _ in range(250):
        with ndx.workspace():
            ndx.ones(3)
    [text] = told()
    assert f"without a name were made at {__file__}:" in text
    assert "Give it a name" in text


def test_workspaces_without_a_name_that_are_used_again(told):
    kept = [ndx.workspace() for _ in range(150)]
    for _ in range(150):
        workspace = ndx.workspace()
        for _ in range(2):
            with workspace, kept.pop() if kept else ndx.no_workspace():
                ndx.ones(3)
    assert told() == []


def cycles(sizes, **policies):
    for size in sizes:
        with ndx.workspace("hinted", **policies):
            ndx.ones(size)
    ndx.workspace("hinted").destroy()


def test_a_first_cycle_that_is_smaller_than_all_others(told):
    with ndx.workspace("small at first"):
        ndx.ones(10)
    for _ in range(40):
        with ndx.workspace("small at first"):
            ndx.ones(1000)
            ndx.ones(1000)
    [text] = told()
    assert "'small at first' has spilled in 16 cycles in a row" in text
    assert "up to 16000" in text
    assert "spill='grow'" in text


def test_an_arena_whose_room_is_still_read_is_not_too_small(told):
    read = None
    for _ in range(40):
        with ndx.workspace("read from outside") as workspace:
            x = ndx.ones(1000)
            if workspace.size and read is None:
                read = memoryview(x)
    assert workspace.stats()["spilled_bytes"] >= 8000
    assert told() == []


def test_the_warning_comes_after_many_other_names(told):
    for number in range(300):
        for size in (10, 1000, 1000):
            with ndx.workspace(f"other {number}"):
                ndx.ones(size)
        ndx.workspace(f"other {number}").destroy()
    cycles([10, *[1000] * 40])
    [text] = told()
    assert "'hinted' has spilled in 16 cycles in a row" in text


@pytest.mark.parametrize(
    ("policies", "sizes"),
    [
        ({}, [10, *[1000] * 15, 10, *[1000] * 10]),
        ({"spill": "grow"}, [10, *[1000] * 40]),
        ({"size": "1KiB"}, [10, *[1000] * 40]),
        ({"learn": "none"}, [1000] * 40),
    ],
)
def test_spills_that_end_or_are_wanted(told, policies, sizes):
    cycles(sizes, **policies)
    assert told() == []

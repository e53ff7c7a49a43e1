"""Workspaces within workspaces, and threads, as ND4J's tests have them."""

import pytest
from helpers.nd4j import L1, LT, B, lines, offset, where
from helpers.threads import in_thread

import ndx


@in_thread
def test_a_copy_is_made_in_the_borrowed_workspace():
    with ndx.workspace("WS1", **B) as ws1:
        x = ndx.arange(10.0)
        with ndx.workspace("WS2", **B) as ws2:
            before = offset(ws2)
            with ndx.workspace("WS1").borrow() as borrowed:
                assert borrowed is ws1
                assert where() == "WS1"
                y = ndx.asarray(x, copy=True)
                assert offset(ws1) == 2 * lines(10)
                assert offset(ws2) == before
            assert where() == "WS2"
            assert y.tolist() == list(range(10))
        assert y.in_scope
        assert ws1.generation == 1


@in_thread
def test_borrowing_a_borrowed_workspace():
    """ND4J refuses this: its workspace remembers one place to go back to."""
    with ndx.workspace("WS1", **B) as ws1, ndx.workspace("WS2", **B) as ws2:
        with ws1.borrow(), ws2.borrow():
            assert where() == "WS2"
            with ws1.borrow(), ws1.borrow():
                assert where() == "WS1"
            assert where() == "WS2"
        assert where() == "WS2"
    assert ws1.generation == ws2.generation == 2
    with pytest.raises(ndx.WorkspaceError, match="no scope of it is open"):
        ws1.borrow().__enter__()


@in_thread
def test_borrowing_within_itself():
    """ND4J's deeper variant is ignored there: its context is lost. Not here."""
    config = L1 | {"learn": "over-time", "cycles": 3}
    workspace = ndx.workspace("A", **config)
    for count in range(100, 1000, 100):
        with workspace:
            x = ndx.full(count, 1.0)
            with workspace:
                y = x + 1
                with workspace.borrow():
                    z = x + y
                    with workspace, workspace.borrow():
                        z += 1
                    assert where() == "A"
                assert where() == "A"
            assert float(ndx.sum(z)) == 4.0 * count
        assert where() is None
    assert workspace.size == 3 * lines(300) + lines(1)
    assert workspace.stats()["cycles"] == 9


@in_thread
def test_parents():
    external, forward = ndx.workspace("External", **B), ndx.workspace("Forward", **B)
    with external:
        assert external.parent is None
        x = ndx.ones(10)
        with forward:
            assert forward.parent is external
            y = ndx.ones(10)
            with external.borrow():
                # Where it was entered does not change.
                assert external.parent is None
                z = ndx.ones(10)
                with ndx.no_workspace():
                    assert where() is None
                    outside = ndx.ones(10)
                assert where() == "External"
            assert where() == "Forward"
            assert forward.parent is external
        assert where() == "External"
        assert [a.attached for a in (x, y, z, outside)] == [True, True, True, False]
        assert [a.in_scope for a in (x, y, z, outside)] == [True, False, True, True]
    assert external.parent is None
    assert forward.parent is None


def test_siblings():
    ws1, ws2, ws3 = (ndx.workspace(**B) for _ in range(3))
    with ws1:
        ndx.ones(100)
        for sibling in (ws2, ws3):
            with sibling:
                ndx.ones(100)
                assert sibling.parent is ws1
                assert offset(sibling) == lines(100)
            assert offset(ws1) == lines(100)
        ndx.ones(100)
        assert offset(ws1) == 2 * lines(100)


@in_thread
def test_two_levels_of_learning_and_the_end_of_all():
    external, internal = ndx.workspace("External", **LT), ndx.workspace("Inner", **LT)
    for initialized in (False, True):
        with external:
            ndx.ones(20)
            for _ in range(5):
                with internal:
                    ndx.ones(10)
                    assert offset(internal) == initialized * lines(10)
                assert offset(external) == initialized * lines(20)
        assert where() is None
        external.initialize()
        internal.initialize()
    assert (external.size, internal.size) == (lines(20), lines(10))
    assert sorted(ws.name for ws in ndx.memory.workspaces()) == ["External", "Inner"]
    assert ndx.memory.destroy_all() == 2
    assert (external.size, internal.size) == (0, 0)
    assert ndx.workspace("External") is not external

"""ND4J's BasicWorkspaceTests, in our words: scopes, moving arrays, staying in scope."""

import pickle

import numpy as np
import pytest
from helpers.nd4j import L1, B, assert_stale, cycle, lines, offset, where
from helpers.threads import in_thread

import ndx


def test_without_a_workspace():
    x = ndx.zeros(10)
    x += 1
    assert float(ndx.sum(x)) == 10.0
    assert not x.attached


@pytest.mark.parametrize("config", [B, L1], ids=["sized", "learned"])
def test_an_array_that_is_returned_from_a_scope(config):
    def make():
        with ndx.workspace(**config):
            return ndx.zeros(10)

    x = make()
    assert where() is None
    assert x.attached
    # ND4J reads it all the same; here that raises.
    assert not x.in_scope
    with pytest.raises(ndx.StaleArrayError):
        ndx.sum(x)


def test_an_exception_in_a_scope():
    with pytest.raises(KeyError, match="inside"), ndx.workspace(**B):  # noqa: PT012
        ndx.zeros(10)
        raise KeyError("inside")
    assert where() is None


# ---- leverage: one scope outward ---------------------------------------------


@in_thread
def test_leverage_takes_an_array_to_the_workspace_around():
    external, internal = ndx.workspace("external", **B), ndx.workspace("internal", **B)
    with external:
        ndx.zeros(10)
        with internal:
            x = ndx.arange(10.0)
            before = offset(internal)
            kept = x.leverage()
            assert kept is not x
            assert kept.workspace == "external"
            assert offset(internal) == before
            assert offset(external) == 2 * lines(10)
        assert_stale(x)
        assert kept.tolist() == list(range(10))
    assert not kept.in_scope


@in_thread
def test_leverage_where_there_is_nothing_around():
    x = ndx.ones(3)
    assert x.leverage() is x
    with ndx.workspace("external", **B):
        y = ndx.ones(3)
        detached = y.leverage()
        assert not detached.attached
        with ndx.workspace("internal", **B):
            # It is there already.
            assert y.leverage() is y
            assert x.leverage() is x
    assert detached.tolist() == [1.0] * 3


@in_thread
def test_leverage_a_view():
    with ndx.workspace("external", **B):
        with ndx.workspace("internal", **B):
            x = ndx.reshape(ndx.arange(100.0), (10, 10))
            kept = x[3:5, ::2].leverage_to("external")
            column = x[:, 7].leverage_to("external")
        cycle(ndx.workspace("internal"), 100)
        assert kept.workspace == column.workspace == "external"
        assert kept.tolist() == [[30, 32, 34, 36, 38], [40, 42, 44, 46, 48]]
        assert column.tolist() == list(range(7, 100, 10))


@in_thread
def test_leverage_to_counts_where_the_copy_goes():
    with ndx.workspace("external", **B) as external:
        ndx.ones(10)
        assert offset(external) == lines(10)
        with ndx.workspace("internal", **B):
            copy = ndx.ones(10).leverage_to("external")
            assert offset(external) == 2 * lines(10)
            assert copy.leverage_to("external") is copy
            assert copy.leverage_to(external) is copy
        assert copy.tolist() == [1.0] * 10


@in_thread
def test_leverage_to_a_workspace_that_is_still_learning():
    internal = ndx.workspace("internal", **L1)
    with ndx.workspace("external", **L1) as external:
        with internal:
            x = ndx.arange(10.0)
            copy = x.leverage_to("external")
            assert copy.attached
            assert external.size == 0
        for _ in range(3):
            cycle(internal, 10)
        assert copy.tolist() == list(range(10))
        assert external.size == 0
    assert external.size == lines(10)


@pytest.mark.parametrize("config", [B, L1], ids=["sized", "learned"])
@in_thread
def test_leverage_of_an_array_that_is_in_no_workspace(config):
    x = ndx.ones(10)
    with ndx.workspace("external", **config) as external:
        assert x.leverage_to("external") is x
        assert x.leverage_to("external", missing="raise") is x
        assert not x.attached
        assert offset(external) == 0


@in_thread
def test_leverage_to_a_workspace_that_is_not_open():
    """ND4J copies into a closed one, where the copy is lost with the next cycle."""
    ndx.workspace("closed", **B)
    with ndx.workspace("internal", **B):
        x = ndx.ones(3)
        for name in ("closed", "unknown"):
            assert x.leverage_to(name) is x
            with pytest.raises(ndx.WorkspaceError, match=name):
                x.leverage_to(name, missing="raise")
            assert not x.leverage_to(name, missing="detach").attached
        with pytest.raises(ValueError, match="missing='drop'"):
            x.leverage_to("closed", missing="drop")


@in_thread
def test_migrate_copies_into_the_current_workspace():
    x = ndx.arange(3.0)
    assert x.migrate() is x
    with ndx.workspace("internal", **B):
        copy = x.migrate()
        assert copy.workspace == "internal"
        with ndx.no_workspace():
            assert copy.migrate() is copy
            with pytest.raises(ndx.WorkspaceError):
                copy.migrate(missing="raise")
            out = copy.migrate(missing="detach")
        with ndx.workspace("deeper", **B):
            assert copy.migrate().workspace == "deeper"
    assert out.tolist() == x.tolist() == [0.0, 1.0, 2.0]


# ---- out of workspaces, within a scope ---------------------------------------


@in_thread
def test_no_workspace_within_a_scope():
    with ndx.workspace("step", **B) as workspace:
        x = ndx.ones(10)
        with ndx.no_workspace():
            y = ndx.ones(10)
            assert where() is None
        assert where() == "step"
        assert offset(workspace) == lines(10)
        assert not y.attached
        z = x + y
        assert z.workspace == "step"
    assert y.tolist() == [1.0] * 10


def test_a_permuted_array_is_reshaped_without_a_copy():
    with ndx.workspace(**B) as workspace:
        x = ndx.reshape(ndx.arange(120.0), (2, 3, 4, 5))
        before = offset(workspace)
        y = ndx.reshape(ndx.permute_dims(x, (3, 0, 1, 2)), (5, 6, 4), copy=False)
        assert offset(workspace) == before
        y[0, 0, 0] = -1.0
        assert float(x[0, 0, 0, 0]) == -1.0
        expected = np.arange(120.0).reshape(2, 3, 4, 5).transpose(3, 0, 1, 2)
        expected[0, 0, 0, 0] = -1.0
        np.testing.assert_array_equal(np.asarray(y), expected.reshape(5, 6, 4))


def test_an_independent_array_is_made_within_a_scope():
    with ndx.workspace(**B) as workspace:
        x = ndx.ones(10)
        with ndx.no_workspace():
            y = ndx.empty(10)
        assert offset(workspace) == lines(10)
        y[...] = x
        assert bool(ndx.all(x == y))
    assert y.tolist() == [1.0] * 10


def test_detach():
    with ndx.workspace(**B) as workspace:
        x = ndx.arange(10.0)
        copy = x.detach()
        assert copy is not x
        assert x.attached
        assert x.in_scope
        assert not copy.attached
        assert copy.in_scope
        assert offset(workspace) == lines(10)
    assert copy.tolist() == list(range(10))
    assert copy.detach() is copy


def test_detach_a_column():
    with ndx.workspace(**B):
        x = ndx.reshape(ndx.arange(12.0), (3, 4))
        column = x[:, 1].detach()
        assert not column.attached
        # A compact copy: nothing of the other columns is kept.
        assert column.strides == (8,)
        assert column.nbytes == 24
    assert column.tolist() == [1.0, 5.0, 9.0]


# ---- in scope, attached ------------------------------------------------------


@pytest.mark.parametrize("config", [B, L1], ids=["sized", "learned"])
def test_in_scope_ends_with_the_scope(config):
    workspace = ndx.workspace(**config)
    with workspace:
        x = ndx.zeros(10)
        assert (workspace.size == 0) == (config is L1)
        assert x.attached
        assert x.in_scope
    assert x.attached
    assert not x.in_scope
    with workspace:
        # ND4J says that it is, as the workspace is open again.
        assert not x.in_scope


def test_the_second_cycle_is_in_the_arena():
    workspace = ndx.workspace(**L1)
    cycle(workspace, 100)
    with workspace:
        x = ndx.zeros(100)
        assert x.in_scope
        assert offset(workspace) == lines(100)
        assert workspace.stats()["spilled_count"] == 0


def test_attached_is_what_was_made_in_a_scope():
    with ndx.workspace(**B):
        x = ndx.ones(10)
        assert x.attached
        y = ndx.sum(x)
        assert y.attached
    assert not ndx.ones(10).attached


def test_values_of_arrays_in_an_arena():
    workspace = ndx.workspace(**B)
    made = {
        "five": lambda: ndx.full((5,), 2.0),
        "a row": lambda: ndx.full((1, 5), 2.0),
        "a list": lambda: ndx.asarray([2.0] * 5),
    }
    for make in made.values():
        with workspace:
            x = make()
            # What NumPy made of a list is adopted, not copied: it counts as spilled.
            assert workspace.stats()["cycle_bytes"] == lines(5)
            assert [float(v) for v in ndx.reshape(x, (5,))] == [2.0] * 5
            assert float(ndx.sum(x)) == 10.0
            x += 1
            assert float(ndx.sum(x)) == 15.0


def test_a_copy_lands_in_the_current_workspace():
    with ndx.workspace(**B) as workspace:
        x = ndx.asarray(np.random.default_rng(0).random((100, 10)), copy=True)
        assert offset(workspace) == lines(1000)
        y = ndx.asarray(x, copy=True)
        assert offset(workspace) == 2 * lines(1000)
        assert bool(ndx.all(x == y))


def test_a_full_arena_that_fails():
    workspace = ndx.workspace(size="1MiB", spill="fail")
    with workspace:
        ndx.ones(10)
        before = workspace.stats()
        with pytest.raises(ndx.OutOfMemoryError, match="is full"):
            ndx.empty(10**7)
        assert workspace.stats() == before
        x = ndx.ones(10)
        assert offset(workspace) == 2 * lines(10)
        assert x.tolist() == [1.0] * 10


@in_thread
def test_an_array_of_a_closed_workspace():
    with ndx.workspace("internal", **B):
        x = ndx.ones(10)
        view = x[2:]
    for stale in (x, view):
        assert_stale(stale)
    with ndx.workspace("external", **B):
        assert_stale(x)


@in_thread
def test_an_array_of_an_earlier_generation():
    workspace = ndx.workspace("external", **B)
    cycle(workspace)
    with workspace:
        x = ndx.ones(10)
        view = x[1:]
        assert workspace.generation == 2
    with workspace:
        assert workspace.generation == 3
        assert_stale(x)
        assert_stale(view)


def test_zeros_in_memory_that_was_written_to():
    """Of ND4J's CUDA arenas without a host mirror; here for every arena."""
    for config in (B, L1, {"learn": "liveness"}, {"reset": "ring", "slots": 2}):
        workspace = ndx.workspace(**config)
        for _ in range(10):
            with workspace:
                for x in (
                    ndx.zeros(4),
                    ndx.zeros((3, 50)),
                    ndx.zeros_like(ndx.ones(7)),
                ):
                    assert not np.asarray(x).any()
                    x[...] = 255.0


@pytest.mark.parametrize("count", [10, 500_000])
def test_unpickling_allocates_outside(count):
    """ND4J reads into the workspace that is open; an unpickled array is meant to stay.

    So here it never lies in a workspace, within ``no_workspace`` or without.
    """
    data = pickle.dumps(ndx.full(count, 3.0))
    with ndx.workspace(**B) as workspace:
        with ndx.no_workspace():
            x = pickle.loads(data)
        y = pickle.loads(data)
        assert offset(workspace) == 0
        assert not x.attached
        assert not y.attached
    for kept in (x, y):
        assert float(ndx.sum(kept)) == 3.0 * count

"""ND4J's BasicWorkspaceTests, in our words: scopes, moving arrays, staying in scope."""

import numpy as np
import pytest
from helpers.nd4j import L1, B, assert_stale, cycle, lines, offset, where
from helpers.threads import in_thread

import ndx

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

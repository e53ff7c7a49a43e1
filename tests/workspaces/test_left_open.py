"""Scopes that a thread or task was in when it ended: who may leave or destroy them."""

import contextvars
import gc
import threading

import pytest
from helpers.nd4j import where
from helpers.threads import run_in_thread

import ndx

pytestmark = pytest.mark.threads


def inside(scope):
    """Yield once in a scope, which is left when the generator ends."""
    with scope:
        yield


@pytest.fixture
def abandoned():
    """A workspace whose thread has ended in its scope, and an array that it made."""
    backend = ndx.backends.get("host", limit="1MiB")

    def work():
        workspace = ndx.workspace("theirs", backend=backend, size="64KiB")
        generator = inside(workspace)
        next(generator)
        return workspace, ndx.arange(100.0), generator

    return run_in_thread(work)


def test_arrays_of_a_thread_that_ended_stay_usable(abandoned):
    workspace, x, _ = abandoned
    gc.collect()
    assert workspace.is_open
    assert x.in_scope
    assert float(ndx.sum(x + 1)) == 5050.0
    assert not (x + 1).attached


@pytest.mark.parametrize("way", ["destroy", "close"])
def test_a_workspace_of_a_thread_that_ended_can_be_destroyed(abandoned, way):
    workspace, x, generator = abandoned
    getattr(workspace, way)()
    assert not workspace.is_open
    assert not x.in_scope
    assert workspace.backend.stats()["allocated_bytes"] == 0
    with pytest.raises(ndx.StaleArrayError):
        x + 1
    # Its own exit comes later, and finds nothing to do; another one is an error.
    generator.close()
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        workspace.__exit__(None, None, None)


def test_destroy_all_takes_what_threads_that_ended_left_open(abandoned):
    workspace, x, _ = abandoned
    assert "left open" in ndx.memory.workspace_summary(all_threads=True)
    ndx.memory.destroy_all(all_threads=True)
    assert not workspace.is_open
    assert not x.in_scope


def test_a_new_thread_has_no_exit_from_what_another_one_entered(abandoned):
    # It has no contextvars.Context yet, as little as what was destroyed.
    workspace, _, generator = abandoned
    workspace.destroy()
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        run_in_thread(workspace.__exit__, None, None, None)
    run_in_thread(generator.close)
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        workspace.__exit__(None, None, None)


@pytest.mark.parametrize("way", [lambda g: next(g, None), lambda g: g.close()])
def test_the_exit_of_a_thread_that_ended_may_come_from_any(abandoned, way):
    workspace, x, generator = abandoned
    way(generator)
    assert not workspace.is_open
    assert not x.in_scope
    assert where() is None


def test_a_workspace_of_a_thread_that_ended_is_not_entered_or_borrowed(abandoned):
    workspace, x, _ = abandoned
    with pytest.raises(ndx.WorkspaceError, match="has ended"), workspace:
        pass
    with pytest.raises(ndx.WorkspaceError, match="no scope of it is open here"):
        workspace.borrow().__enter__()
    assert x.in_scope


def test_a_thread_that_ended_within_several_scopes():
    def work():
        outer = ndx.workspace("outer", size="64KiB")
        inner = ndx.workspace("inner", size="64KiB")
        for scope in (outer, inner, outer, ndx.use("host", limit="1MiB"), inner):
            scope.__enter__()
        outer.borrow().__enter__()
        return outer, inner

    outer, inner = run_in_thread(work)
    outer.destroy()
    assert not outer.is_open
    assert inner.is_open
    inner.destroy()
    assert (outer.stats()["cycles"], inner.stats()["cycles"]) == (1, 1)


def test_a_thread_that_waits_has_not_ended():
    entered, done = threading.Event(), threading.Event()
    found = []

    def work():
        with ndx.workspace("theirs", size="64KiB") as workspace:
            found.append(workspace)
            entered.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
        found[0].destroy()
    with pytest.raises(ndx.WorkspaceError, match="not entered in this thread"):
        found[0].__exit__(None, None, None)
    done.set()
    thread.join()
    assert not found[0].is_open


def test_a_context_that_two_threads_run_in_turn():
    # What the one that goes on has entered there is not left open by the other's end.
    context = contextvars.copy_context()
    backend = ndx.backends.get("host", limit="1MiB")
    run_in_thread(context.run, ndx.use(backend).__enter__)
    theirs = ndx.workspace(size="4KiB")
    context.run(theirs.__enter__)
    assert not theirs.is_left_open
    with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
        theirs.destroy()
    context.run(theirs.__exit__, None, None, None)
    assert not theirs.is_open
    theirs.destroy()


def test_a_refused_destroy_ends_nothing():
    # The same context: one thread waits within what another one has ended in.
    context = contextvars.copy_context()
    workspace = ndx.workspace(size="4KiB")
    context.run(workspace.__enter__)
    run_in_thread(context.run, workspace.__enter__)
    assert workspace.is_left_open
    with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
        workspace.destroy()
    assert workspace.is_left_open
    run_in_thread(context.run, workspace.__exit__, None, None, None)
    assert workspace.is_open
    context.run(workspace.__exit__, None, None, None)
    assert not workspace.is_open


def test_the_exit_of_what_was_destroyed_while_it_was_covered_finds_nothing_to_do():
    def work():
        outer, inner = (ndx.workspace(name, size="64KiB") for name in ("o", "i"))
        generators = [inside(outer), inside(inner)]
        for generator in generators:
            next(generator)
        return outer, inner, generators

    outer, inner, (first, second) = run_in_thread(work)
    outer.destroy()
    assert not outer.is_open
    assert inner.is_open
    first.close()
    with pytest.raises(ndx.WorkspaceError, match="out of order"):
        outer.__exit__(None, None, None)
    second.close()
    assert not inner.is_open
    assert (outer.stats()["cycles"], inner.stats()["cycles"]) == (1, 1)


def test_the_exit_of_what_was_left_early_and_destroyed_finds_nothing_to_do():
    def body(outer, inner):
        with outer, inner:
            with pytest.raises(ndx.WorkspaceError, match="out of order"):
                outer.__exit__(None, None, None)
            yield

    def work():
        outer, inner = (ndx.workspace(name, size="64KiB") for name in ("o", "i"))
        generator = body(outer, inner)
        next(generator)
        return outer, inner, generator

    outer, inner, generator = run_in_thread(work)
    outer.destroy()
    assert not outer.is_open
    assert inner.is_open
    generator.close()
    assert not inner.is_open
    for workspace in (outer, inner):
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            workspace.__exit__(None, None, None)
        assert workspace.stats()["cycles"] == 1

"""What runs while a scope is entered or left: finalizers, and callbacks for memory.

A generator in a reference cycle is closed by whichever collection comes first, and so
leaves the scope in which it was abandoned.
"""

import contextlib
import gc
import sys

import numpy as np
import pytest
from helpers.commands import run_python

import ndx

pytestmark = pytest.mark.thread_unsafe(reason="callbacks are the process's")

MORE = 80  # allocations of objects, after each of which a collection is tried

# Since Python 3.12 a collection waits until the current instruction ends. It may then
# run after the inner scope was entered. Its finalizer leaves the outer scope out of
# order, which raises a WorkspaceError that nobody can catch: Python shows it as a
# warning.
out_of_order = pytest.mark.filterwarnings(
    "ignore:Exception ignored .*<generator object abandon"
    ":pytest.PytestUnraisableExceptionWarning"
    if sys.version_info >= (3, 12)
    else "default:no such warning"
)


@pytest.fixture
def collections():
    """Give back the collector's thresholds; no `on_oom` callback stays."""
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.enable()


def abandon(scope):
    """Enter a scope in a generator that only a collection closes."""

    def generator(cycle):
        with scope:
            yield

    cycle = []
    cycle.append(generator(cycle))
    next(cycle[0])


def collecting_at(count):
    """Let the collector run after so many more objects."""
    gc.set_threshold(count)
    gc.enable()


def backend():
    return ndx.backends.get("host", limit="1MiB")


def served_by(backend):
    before = backend.stats()["total_allocations"]
    x = ndx.empty(1000)
    return x.nbytes and backend.stats()["total_allocations"] > before


@out_of_order
@pytest.mark.parametrize("numpy", [None, True])
def test_use_while_another_scope_ends(collections, numpy):
    left, entered = backend(), backend()
    for count in range(1, MORE):
        gc.collect()
        gc.disable()
        abandon(ndx.use(left, numpy=numpy))
        scope = ndx.use(entered, numpy=numpy)
        collecting_at(count)
        with scope:
            gc.disable()
            assert served_by(entered)
        gc.collect()
        assert not served_by(left), count
        before = left.stats()["total_allocations"], entered.stats()["total_allocations"]
        np.empty(1000)
        assert before == (
            left.stats()["total_allocations"],
            entered.stats()["total_allocations"],
        ), count


MAKERS = {
    "no_workspace": ndx.no_workspace,
    "workspace": lambda: ndx.workspace("entered"),
    "borrow": lambda: ndx.workspace("entered").borrow(),
}


@out_of_order
@pytest.mark.parametrize(
    ("name", "nested"),
    [
        (name, nested)
        for name in MAKERS
        for nested in (False, True)
        if nested or name != "borrow"
    ],
)
def test_scopes_while_another_one_ends(collections, name, nested):
    outer = ndx.workspace("entered")
    if nested:
        outer.__enter__()
    expected = None if name == "no_workspace" else "entered"
    for count in range(1, MORE):
        gc.collect()
        gc.disable()
        abandon(ndx.use(backend()))
        scope = MAKERS[name]()
        collecting_at(count)
        with scope:
            gc.disable()
            assert ndx.ones(10).workspace == expected, count
        gc.collect()
    if nested:
        assert ndx.ones(10).workspace == "entered"
        outer.__exit__(None, None, None)
    assert ndx.ones(10).workspace is None
    outer.destroy()


@out_of_order
def test_a_workspace_that_is_closed_while_it_is_borrowed(collections):
    for count in range(1, MORE):
        ws = ndx.workspace("borrowed")
        gc.collect()
        gc.disable()
        abandon(ws)
        borrowed = ws.borrow()
        collecting_at(count)
        # The collection may come before it is borrowed.
        with contextlib.suppress(ndx.WorkspaceError), borrowed:
            gc.disable()
            assert ndx.ones(10).workspace == "borrowed"
        gc.disable()
        gc.collect()
        assert ndx.ones(10).workspace is None
        ws.destroy()


def test_a_scope_that_a_collection_for_memory_ends():
    small = backend()

    def generator(cycle):
        with ndx.use(small):
            x = ndx.empty(900 * 1024, dtype=ndx.uint8)
            yield x

    gc.disable()
    try:
        cycle = []
        cycle.append(generator(cycle))
        next(cycle[0])
        del cycle
        ws = ndx.workspace("needs the memory", size="512KiB")
        with ws:
            assert ndx.ones(10).workspace == "needs the memory"
    finally:
        gc.enable()
    assert served_by(small) is False
    ws.destroy()


@pytest.fixture
def on_oom():
    """Return a function that registers a callback until the test ends."""
    added = []

    def add(callback):
        added.append(callback)
        ndx.memory.on_oom(callback)

    yield add
    for callback in added:
        ndx.memory.remove_on_oom(callback)


def test_a_scope_that_a_callback_leaves(on_oom):
    small = backend()
    scope = ndx.use(small)
    scope.__enter__()
    hog = [ndx.empty(900 * 1024, dtype=ndx.uint8)]

    def callback(nbytes):
        hog.clear()
        if not left:
            left.append(True)
            scope.__exit__(None, None, None)
        return True

    left = []
    on_oom(callback)
    with ndx.workspace("w", size="512KiB") as ws:
        assert left
        assert ndx.ones(3).workspace == "w"
    assert ndx.ones(3).workspace is None
    ws.destroy()


def test_a_workspace_that_is_entered_while_it_is_made(on_oom):
    """Its memory would be taken twice."""
    small = ndx.backends.get("host", limit="64MiB")
    with ndx.use(small):
        hog = [ndx.empty(63 << 20, dtype=ndx.uint8)]
    said = []

    def callback(nbytes):
        hog.clear()
        for ws in ndx.memory.workspaces():
            if ws.name == "made":
                try:
                    ws.__enter__()
                except ndx.WorkspaceError as error:
                    said.append(str(error))
        return True

    on_oom(callback)
    ws = ndx.workspace("made", size="4MiB", backend=small)
    assert "can't be entered while" in said[0]
    assert not ws.is_open
    with ws:
        assert ndx.ones(3).workspace == "made"
    ws.destroy()
    assert small.stats()["allocated_bytes"] == 0


@pytest.mark.threads
def test_a_workspace_without_a_name_in_a_thread_without_a_function():
    program = """
import _thread, sys, time
import ndx
made = []
_thread.start_new_thread(ndx.workspace, ())
time.sleep(0.2)
"""
    assert run_python(program) == ""

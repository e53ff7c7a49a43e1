"""What code can ask: which workspace is current, open here, and has an array."""

import asyncio
import threading

import numpy as np
import pytest
from helpers.threads import run_in_thread

import ndx


def test_the_current_workspace_is_the_innermost_one():
    assert ndx.current_workspace() is None
    with ndx.workspace("outer") as outer:
        assert ndx.current_workspace() is outer
        with ndx.workspace("inner") as inner:
            assert ndx.current_workspace() is inner
            with outer.borrow():
                assert ndx.current_workspace() is outer
            assert ndx.current_workspace() is inner
        assert ndx.current_workspace() is outer
    assert ndx.current_workspace() is None


def test_new_arrays_are_in_the_current_workspace():
    with ndx.workspace("step") as ws:
        assert ws.owns(ndx.ones(3))
        for scope in (ndx.no_workspace(), ndx.use("mmap"), ndx.use("host")):
            with scope:
                assert ndx.current_workspace() is None
                assert not ndx.ones(3).attached


def test_other_threads_and_tasks_have_no_current_workspace():
    with ndx.workspace("step") as ws:
        assert run_in_thread(ndx.current_workspace) is None
        assert not run_in_thread(lambda: ws.is_open_here)
        assert ws.is_open
        assert ws.is_open_here


def test_a_task_is_in_its_own_sibling_only():
    async def inside(entered, leave):
        with ndx.workspace("step") as ws:
            assert ndx.current_workspace() is ws
            entered.set()
            await leave.wait()
            return ws, ws.owns(ndx.ones(3))

    async def main():
        entered, leave = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(inside(entered, leave))
        await entered.wait()
        first = ndx.workspace("step")
        assert first.is_open
        assert not first.is_open_here
        assert ndx.current_workspace() is None
        with first as sibling:
            assert sibling is not first
            # Borrowing either of them gives the sibling.
            assert first.is_open_here
            assert sibling.is_open_here
            assert ndx.current_workspace() is sibling
            x = ndx.ones(3)
            assert sibling.owns(x)
            assert not first.owns(x)
        leave.set()
        assert await task == (first, True)

    run_in_thread(lambda: asyncio.run(main()))


def test_a_bypassed_workspace_is_current_and_owns_nothing():
    ndx.memory.debug_mode("bypass")
    try:
        with ndx.workspace("step") as ws:
            assert ndx.current_workspace() is ws
            assert ws.is_open_here
            assert not ws.owns(ndx.ones(3))
            assert ws.pinned_count == 0
    finally:
        ndx.memory.debug_mode("off")


def test_a_workspace_owns_its_arrays_and_their_views():
    with ndx.workspace("outer") as outer, ndx.workspace("inner") as inner:
        x = ndx.ones(3)
        moved = x.leverage()
        assert inner.owns(x)
        assert inner.owns(x[1:])
        assert not outer.owns(x)
        assert outer.owns(moved)
        assert not inner.owns(x.detach())
        assert not inner.owns(x[0])
        assert not inner.owns(ndx.asarray(np.ones(3), copy=False))


def test_spilled_arrays_belong_to_the_workspace():
    with ndx.workspace(learn="none", size=64) as ws:
        x = ndx.ones(1000)
        assert ws.stats()["spilled_count"] == 1
        assert ws.owns(x)


def test_a_workspace_owns_no_stale_array():
    with ndx.workspace("step") as ws:
        x = ndx.ones(3)
    assert not ws.owns(x)


def test_a_closed_ring_owns_what_is_valid():
    ring = ndx.workspace(reset="ring", slots=2)
    made = []
    for _ in range(3):
        with ring:
            made.append(ndx.ones(3))
    assert [ring.owns(x) for x in made] == [False, True, True]
    other = ndx.workspace(reset="ring", slots=2)
    assert not other.owns(made[-1])


def test_another_thread_s_workspace_of_the_name_owns_others():
    with ndx.workspace("step") as ws:
        x = ndx.ones(3)

        def in_thread():
            with ndx.workspace("step") as there:
                return there.owns(x), there.owns(ndx.ones(3)), ws.owns(ndx.ones(3))

        assert run_in_thread(in_thread) == (False, True, False)


@pytest.mark.parametrize("x", [None, 1.0, np.ones(3)])
def test_owns_takes_arrays_of_ndx(x):
    with pytest.raises(TypeError, match="owns NDArrays, not"):
        ndx.workspace("step").owns(x)


@pytest.mark.parametrize("escape", ["raise", "detach"])
def test_pinned_count_is_that_of_the_statistics(escape):
    ws = ndx.workspace("pinned", escape=escape, size="1MiB")
    assert ws.pinned_count == 0
    kept = []
    for count in range(1, 4):
        with ws:
            kept.append(np.asarray(ndx.ones(100)))
        assert ws.pinned_count == ws.stats()["pinned_count"] == count
    del kept[1:]
    assert ws.pinned_count == ws.stats()["pinned_count"] == 1


def test_pinned_count_may_be_read_from_any_thread():
    ws = ndx.workspace("pinned", size="1MiB")
    with ws:
        kept = np.asarray(ndx.ones(100))
    counts = []
    thread = threading.Thread(target=lambda: counts.append(ws.pinned_count))
    thread.start()
    thread.join()
    assert counts == [1]
    assert kept[0] == 1

"""Threads and asyncio tasks have contexts and workspaces of their own."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest
from helpers.threads import in_thread, run_in_thread

import ndx


def where():
    return ndx.zeros(1).workspace


def enter(workspace):
    with workspace:
        pass


@in_thread
def test_each_thread_has_its_own_of_a_name():
    mine = ndx.workspace("step", size="1KiB")
    theirs = run_in_thread(ndx.workspace, "step", size="2KiB")
    assert theirs is not mine
    assert (mine.size, theirs.size) == (1024, 2048)
    assert ndx.workspace("step") is mine


@in_thread
def test_threads_in_a_scope_of_the_same_name_are_apart():
    barrier = threading.Barrier(3)
    seen = []

    def work(value):
        for _ in range(20):
            with ndx.workspace("step", size="64KiB") as workspace:
                x = ndx.full(100, value)
                barrier.wait()
                y = x + 1
                barrier.wait()
                seen.append((np.asarray(y) == value + 1).all())
        seen.append(workspace.stats()["spilled_count"] == 0)
        barrier.wait()

    threads = [threading.Thread(target=work, args=(float(n),)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 63
    assert all(seen)


@pytest.mark.threads
def test_a_new_thread_starts_from_the_default():
    with ndx.use("host", limit="1MiB") as backend, ndx.workspace(size="1KiB"):
        found = run_in_thread(lambda: (ndx.current_backend(), where()))
    assert found[0] is not backend
    assert found[1] is None


@pytest.mark.threads
def test_a_thread_cannot_enter_another_threads_workspace():
    workspace = ndx.workspace(size="1KiB")
    with pytest.raises(ndx.WorkspaceError, match="belongs to another thread"):
        run_in_thread(enter, workspace)
    with workspace:
        with pytest.raises(ndx.WorkspaceError, match="open in another thread"):
            run_in_thread(enter, workspace)
        with pytest.raises(ndx.WorkspaceError, match="out of order"):
            run_in_thread(workspace.__exit__, None, None, None)
        assert where() == workspace.name
    assert not workspace.is_open


@pytest.mark.threads
def test_any_thread_reads_an_array_of_a_workspace():
    with ndx.workspace(size="1KiB"):
        x = ndx.ones(10)
        total = run_in_thread(lambda: ndx.sum(x + 1))
        assert not total.attached
    assert total.item() == 20.0
    with pytest.raises(ndx.StaleArrayError):
        run_in_thread(lambda: x + 1)


@in_thread
def test_the_last_reference_may_go_in_another_thread():
    backend = ndx.backends.get("host", limit="1MiB")
    with ndx.use(backend):
        box = [ndx.ones(1000), np.asarray(ndx.ones(1000))]
    run_in_thread(box.clear)
    assert backend.stats()["allocated_bytes"] == 0


# ---- a copied context --------------------------------------------------------


def test_a_copied_context_does_not_allocate_from_the_arena():
    with ndx.workspace(size="1KiB") as workspace:
        x = ndx.ones(3)
        copied = contextvars.copy_context()
        y = copied.run(lambda: x + 1)
        assert y.workspace is None
        assert y.backend is workspace.backend
        with pytest.raises(ndx.WorkspaceError, match="inherited"):
            copied.run(workspace.__exit__, None, None, None)
        # It enters an arena of its own.
        assert copied.run(workspace.__enter__) is not workspace
        z = copied.run(ndx.ones, 100)
        assert workspace.stats()["cycle_bytes"] == 64
        copied.run(workspace.__exit__, None, None, None)
        assert (z.workspace, z.in_scope, x.in_scope) == (workspace.name, False, True)
        assert where() == workspace.name
    assert y.tolist() == [2.0] * 3
    assert copied.run(where) is None


def test_use_is_inherited_by_a_copied_context():
    with ndx.use("host", limit="1MiB") as backend:
        copied = contextvars.copy_context()
    assert copied.run(ndx.current_backend) is backend
    assert ndx.current_backend() is not backend


def test_a_scope_within_a_copied_context():
    def work():
        with ndx.workspace(size="1KiB") as inner:
            return where() == inner.name, where()

    with ndx.workspace(size="1KiB") as outer:
        same, _ = contextvars.copy_context().run(work)
        assert same
        assert where() == outer.name


# ---- asyncio -----------------------------------------------------------------


def run(main):
    """Run a coroutine function on a loop of its own, in a thread of its own."""
    return run_in_thread(lambda: asyncio.run(main()))


def test_each_task_has_its_own_of_a_name():
    async def work(value):
        good = []
        for _ in range(10):
            with ndx.workspace("step", size="16KiB") as workspace:
                x = ndx.full(100, value)
                await asyncio.sleep(0)
                y = x + 1
                await asyncio.sleep(0)
                good.append(y.workspace == "step" and y.tolist() == [value + 1] * 100)
        return workspace, good

    async def main():
        return await asyncio.gather(*(work(float(n)) for n in range(4)))

    results = run(main)
    assert len({id(workspace) for workspace, _ in results}) == 4
    assert all(workspace.stats()["cycles"] == 10 for workspace, _ in results)
    assert all(all(good) for _, good in results)


@pytest.mark.threads
def test_a_task_inherits_no_arena():
    async def child(x):
        y = x + 1
        await asyncio.sleep(0)
        return y, x + 2

    async def main():
        with ndx.workspace("step", size="16KiB") as workspace:
            x = ndx.ones(3)
            by_task = await asyncio.create_task(child(x))
            by_thread = await asyncio.to_thread(lambda: x + 1)
            awaited = await child(x)
            assert awaited[0].workspace == "step"
            with pytest.raises(ndx.WorkspaceError):
                await asyncio.create_task(leave(workspace))
            with pytest.raises(ndx.WorkspaceError, match="open in another thread"):
                await asyncio.to_thread(enter, workspace)
            assert where() == "step"
        return [*by_task, by_thread], awaited

    async def leave(workspace):
        workspace.__exit__(None, None, None)

    kept, awaited = run(main)
    assert [x.tolist() for x in kept] == [[2.0] * 3, [3.0] * 3, [2.0] * 3]
    assert not any(x.attached for x in kept)
    assert not any(x.in_scope for x in awaited)


def test_a_task_that_outlives_the_scope_it_inherited():
    async def child(x, ended):
        y = x + 1
        await ended.wait()
        z = y + 1
        with pytest.raises(ndx.StaleArrayError):
            x + 1
        return z

    async def main():
        ended = asyncio.Event()
        with ndx.workspace("step", size="16KiB"):
            task = asyncio.create_task(child(ndx.ones(3), ended))
            await asyncio.sleep(0)
        with ndx.workspace("step"):
            ndx.full(100, 7.0)
        ended.set()
        return await task

    z = run(main)
    assert not z.attached
    assert z.tolist() == [3.0] * 3


def test_a_child_asking_for_its_parents_name_gets_its_own():
    async def child():
        with ndx.workspace("step") as inner:
            with pytest.raises(ndx.WorkspaceError, match="exists with"):
                ndx.workspace("step", size="1KiB")
            assert ndx.workspace("step", size="16KiB") is inner
            return inner, where()

    async def main():
        with ndx.workspace("step", size="16KiB") as outer:
            inner, name = await asyncio.create_task(child())
            return outer, inner, name

    outer, inner, name = run(main)
    assert inner is not outer
    assert name == "step"
    assert (outer.size, inner.size) == (16384, 16384)


@pytest.mark.threads
def test_an_inherited_context_does_not_make_it_an_owner():
    workspace = ndx.workspace(size="1KiB")
    with workspace:
        pass

    def enter():
        with workspace as entered:
            return entered

    async def child():
        assert enter() is workspace
        with pytest.raises(ndx.WorkspaceError, match="belongs to another thread"):
            await asyncio.to_thread(enter)

    asyncio.run(child())
    with workspace:
        assert ndx.ones(3).attached


@pytest.mark.threads
def test_a_workspace_of_the_thread_is_its_tasks_too():
    async def main(workspace):
        with workspace as entered:
            assert entered is workspace
        return ndx.workspace("step")

    def work():
        mine = ndx.workspace("step", size="1KiB")
        assert asyncio.run(main(mine)) is mine
        with mine:
            assert where() == "step"

    run_in_thread(work)


def test_use_decorates_coroutine_functions():
    backend = ndx.backends.get("host", limit="1MiB")

    @ndx.use(backend)
    async def make():
        await asyncio.sleep(0)
        return ndx.zeros(3)

    async def main():
        return await asyncio.gather(make(), make()), ndx.zeros(3)

    made, outside = run(main)
    assert all(x.backend is backend for x in made)
    assert outside.backend is not backend


def test_a_cancelled_task_leaves_its_scope():
    async def child(entered):
        with ndx.workspace("step", size="1KiB") as workspace:
            entered.set_result(workspace)
            await asyncio.sleep(60)

    async def main():
        entered = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(child(entered))
        workspace = await entered
        assert workspace.is_open
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return workspace

    assert not run(main).is_open

"""Tasks share a workspace one after the other, and are apart where they interleave."""

import asyncio
import contextvars
import threading

import numpy as np
import pytest
from helpers.nd4j import where
from helpers.threads import run_in_thread

import ndx


def run(main):
    """Run a coroutine function on a loop of its own, in a thread of its own."""
    return run_in_thread(lambda: asyncio.run(main()))


def named(name="step"):
    return [each for each in ndx.memory.workspaces() if each.name == name]


async def cell(size=None):
    """A cell of a notebook, or a request: a scope of its own."""
    with ndx.workspace("step", **({"size": size} if size else {})) as workspace:
        x = ndx.ones(1000)
        assert x.workspace == "step"
        assert float(ndx.sum(x)) == 1000.0
    return workspace


def test_tasks_one_after_the_other_share_a_workspace():
    async def main():
        found = [await asyncio.create_task(cell()) for _ in range(5)]
        assert len({id(each) for each in found}) == 1
        # The first one learned for all.
        stats = found[0].stats()
        assert (stats["cycles"], stats["spilled_count"]) == (5, 0)
        assert len(named()) == 1
        with pytest.raises(ndx.WorkspaceError, match="exists with"):
            await asyncio.create_task(cell("64MiB"))

    run(main)


def test_the_name_alone_finds_it_in_the_next_task():
    async def ask():
        return ndx.workspace("step")

    async def main():
        a = await asyncio.create_task(ask())
        b = await asyncio.create_task(ask())
        assert a is b

    run(main)


@pytest.mark.threads
def test_loops_one_after_the_other_share_a_workspace():
    def work():
        first = asyncio.run(cell())
        assert asyncio.run(cell()) is first
        with ndx.workspace("step") as mine:
            assert mine is first
        assert mine.stats()["cycles"] == 3

    run_in_thread(work)


async def interleave(value, seen):
    with ndx.workspace("step", size="64KiB") as workspace:
        assert ndx.workspace("step") is workspace
        x = ndx.full(100, value)
        for _ in range(3):
            await asyncio.sleep(0)
            assert x.tolist() == [value] * 100
            x += ndx.ones(100)
            x -= 1
        seen.append(workspace)
    assert not x.in_scope
    return x


@pytest.mark.parametrize("group", ["gather", "TaskGroup"])
def test_tasks_that_interleave_have_an_arena_each(group):
    async def together(count, seen):
        if group == "gather":
            await asyncio.gather(*(interleave(float(n), seen) for n in range(count)))
        else:
            async with asyncio.TaskGroup() as tasks:
                for n in range(count):
                    tasks.create_task(interleave(float(n), seen))

    async def main():
        seen = []
        for count in (3, 5, 2, 5, 1):
            del seen[:]
            await together(count, seen)
            assert len({id(each) for each in seen}) == count
        # As many as there were at once, however many tasks there were.
        assert len(named()) == 5
        assert sum(each.stats()["cycles"] for each in named()) == 16
        table = ndx.memory.workspace_summary()
        assert [f"step ({n})" in table for n in range(2, 7)] == [True] * 4 + [False]
        assert ndx.workspace("step") is await asyncio.create_task(cell())
        ndx.workspace("step").destroy()
        assert [each.stats()["size"] for each in named()] == [0] * len(named())
        with ndx.workspace("step") as new:
            assert new.config == ndx.WorkspaceConfig()

    run(main)


def test_a_sibling_knows_the_size_that_was_learned():
    async def nested():
        with ndx.workspace("step") as sibling:
            ndx.ones(1000)
            assert sibling.stats()["spilled_count"] == 0
        return sibling

    async def main():
        first = await asyncio.create_task(cell())
        with ndx.workspace("step") as mine:
            assert mine is first
            sibling = await asyncio.create_task(nested())
        assert sibling is not first
        assert sibling.size == first.size > 0

    run(main)


def test_a_handle_enters_the_arena_that_is_free():
    async def task(workspace, barrier, kept):
        with workspace as mine:
            x = ndx.full(10, 1.0)
            kept.append((mine, x))
            await barrier.wait()
            with workspace as again, workspace.borrow() as borrowed:
                assert again is borrowed is mine
                assert (x + ndx.full(10, 1.0)).leverage_to(workspace).in_scope
            assert mine.is_open
            await barrier.wait()
        assert not mine.is_open

    async def main():
        workspace = ndx.workspace(size="16KiB")

        async def wait():
            # asyncio.Barrier, for three.
            nonlocal count
            count += 1
            target = -(-count // 3) * 3
            while count < target:
                await asyncio.sleep(0)

        count = 0
        barrier = type("Barrier", (), {"wait": staticmethod(wait)})
        kept = []
        await asyncio.gather(*(task(workspace, barrier, kept) for _ in range(3)))
        assert len({id(mine) for mine, _ in kept}) == 3
        assert not any(x.in_scope for _, x in kept)

    run(main)


def test_an_open_sibling_keeps_all_of_them_from_being_destroyed():
    async def child(entered, done):
        with ndx.workspace("step") as mine:
            entered.set_result(mine)
            await done

    async def main():
        loop = asyncio.get_running_loop()
        entered, done = loop.create_future(), loop.create_future()
        with ndx.workspace("step", size="4KiB") as first:
            task = asyncio.create_task(child(entered, done))
            sibling = await entered
        assert sibling is not first
        for each in (first, sibling):
            for way in (each.destroy, each.close, each.initialize):
                with pytest.raises(ndx.WorkspaceError, match="while a scope of it"):
                    way()
        assert ndx.memory.destroy_all() == 0
        assert first.size == 4096
        done.set_result(None)
        await task
        assert ndx.memory.destroy_all() == 2
        assert first.stats()["size"] == sibling.stats()["size"] == 0

    run(main)


def test_a_file_is_not_shared(tmp_path):
    async def child(workspace):
        with pytest.raises(ndx.WorkspaceError, match="can't be shared"), workspace:
            pass

    async def main():
        workspace = ndx.workspace("in a file", path=tmp_path / "f", size="64KiB")
        with workspace:
            await asyncio.create_task(child(workspace))
        workspace.close()

    run(main)


def test_a_workspace_of_a_cancelled_task_is_free_again():
    async def child(entered):
        with ndx.workspace("step", size="4KiB") as mine:
            entered.set_result(mine)
            await asyncio.sleep(60)

    async def main():
        for _ in range(3):
            entered = asyncio.get_running_loop().create_future()
            task = asyncio.create_task(child(entered))
            mine = await entered
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not mine.is_open
        assert len(named()) == 1

    run(main)


def test_asynchronous_generators_of_tasks():
    async def slowly(value):
        with ndx.workspace("step", size="4KiB"):
            for _ in range(3):
                x = ndx.full(10, value)
                yield x
                assert x.tolist() == [value] * 10

    async def task(value, stop):
        async for x in slowly(value):
            await asyncio.sleep(0)
            assert x.tolist() == [value] * 10
            if stop:
                break

    async def main():
        for stop in (False, True, False):
            await asyncio.gather(*(task(float(n), stop) for n in range(3)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        await asyncio.get_running_loop().shutdown_asyncgens()
        assert not any(each.is_open for each in named())
        assert len(named()) <= 6
        assert where() is None

    run(main)


@pytest.mark.threads
def test_threads_of_a_pool_have_their_own():
    def work(n):
        with ndx.workspace("step", size="4KiB") as mine:
            x = ndx.full(10, float(n))
            assert x.tolist() == [float(n)] * 10
        return threading.get_ident(), mine

    async def main():
        with ndx.workspace("step", size="4KiB") as outer:
            found = await asyncio.gather(
                *(asyncio.to_thread(work, n) for n in range(10))
            )
            assert outer not in [mine for _, mine in found]
            # One of a thread, however many tasks it ran for.
            assert len({*found}) == len({ident for ident, _ in found})

    run(main)


def test_a_task_that_ended_inside_leaves_its_arrays_usable():
    async def forgetful():
        ndx.workspace("step", size="4KiB").__enter__()
        return ndx.ones(10)

    async def main():
        task = asyncio.create_task(forgetful())
        x = await task
        left_open = ndx.workspace("step")
        assert left_open.is_left_open
        for _ in range(3):
            # Nobody takes over what may still be in use.
            assert await asyncio.create_task(cell()) is not left_open
            assert x.tolist() == [1.0] * 10
        assert len(named()) == 2
        left_open.destroy()
        assert not x.in_scope
        assert await asyncio.create_task(cell()) is ndx.workspace("step")

    run(main)


def test_a_context_that_serves_two_tasks_in_turn():
    # As of one notebook: what the first task left says nothing of the second.
    async def enter(workspace):
        workspace.__enter__()

    async def leave(workspace):
        assert ndx.ones(3).workspace == "step"
        with pytest.raises(ndx.WorkspaceError, match="while a scope of it is open"):
            await asyncio.create_task(destroy(workspace))
        workspace.__exit__(None, None, None)

    async def destroy(workspace):
        workspace.destroy()

    async def both(workspace):
        await enter(workspace)
        await leave(workspace)

    async def main():
        context = contextvars.copy_context()
        workspace = ndx.workspace("step", size="4KiB")
        for _ in range(3):
            await asyncio.create_task(both(workspace), context=context)
            assert not workspace.is_open

    run(main)


def test_the_parent_is_the_sibling_that_was_borrowed():
    first, inner = ndx.workspace(size="4KiB"), ndx.workspace(size="4KiB")
    task = contextvars.copy_context()

    def step():
        with first as sibling, first.borrow() as borrowed, inner:
            assert sibling is borrowed is not first
            assert inner.parent is sibling

    with first:
        task.run(step)


def test_a_task_that_enters_what_another_left_open_in_the_same_context():
    async def enter(workspace):
        workspace.__enter__()

    async def again(workspace):
        with workspace:
            x = ndx.ones(3)
            assert not workspace.is_left_open
            with pytest.raises(ndx.WorkspaceError, match="while a scope of it"):
                workspace.destroy()
            assert x.in_scope
        assert workspace.is_left_open

    async def borrow(workspace):
        with workspace.borrow():
            assert not workspace.is_left_open
        assert workspace.is_left_open

    async def main():
        context = contextvars.copy_context()
        workspace = ndx.workspace("step", size="4KiB")
        for step in (enter, again, borrow):
            await asyncio.create_task(step(workspace), context=context)
        workspace.destroy()
        assert not workspace.is_open

    run(main)


class Kernel:
    """ipykernel 7, in little: each cell is a task, in a copy of the shell's context."""

    def __init__(self):
        self.names = {"ndx": ndx}
        self.context = contextvars.copy_context()

    async def run_cell(self, code):
        async def body():
            exec(code, self.names)

        context = self.context.copy()
        await asyncio.get_running_loop().create_task(body(), context=context)


def test_cells_of_a_notebook():
    async def main():
        kernel = Kernel()
        for _ in range(3):
            await kernel.run_cell(
                "with ndx.workspace('step', size='64KiB') as ws:\n"
                "    x = ndx.ones(100); y = float(ndx.sum(x))"
            )
        workspace = kernel.names["ws"]
        assert kernel.names["y"] == 100.0
        assert workspace.stats()["cycles"] == 3
        assert named() == [workspace]
        # A generator that one cell begins and another one ends.
        await kernel.run_cell(
            "def within():\n"
            "    with ndx.workspace('step'):\n"
            "        yield ndx.ones(3)\n"
            "g = within(); x = next(g)"
        )
        x = kernel.names["x"]
        await kernel.run_cell("with ndx.workspace('step') as other: pass")
        assert kernel.names["other"] is not workspace
        assert x.tolist() == [1.0] * 3
        await kernel.run_cell("next(g, None)")
        assert not x.in_scope
        assert not workspace.is_open
        await kernel.run_cell("with ndx.workspace('step') as other: pass")
        assert kernel.names["other"] is workspace
        assert len(named()) == 2

    run(main)


@pytest.mark.threads
def test_siblings_go_with_the_thread():
    backend = ndx.backends.get("host", limit="1MiB")

    async def task(both):
        with ndx.workspace("step", backend=backend, size="4KiB"):
            both[0] += 1
            while both[0] < 2:
                await asyncio.sleep(0)

    async def main():
        both = [0]
        await asyncio.gather(task(both), task(both))
        assert len(named()) == 2
        assert backend.stats()["allocated_bytes"] == 8192

    run(main)
    assert backend.stats()["allocated_bytes"] == 0


def test_what_foreign_code_reads_of_a_sibling_stays():
    async def task(value, kept):
        with ndx.workspace("step", size="64KiB"):
            await asyncio.sleep(0)
            kept.append((value, np.asarray(ndx.full(100, value))))
            await asyncio.sleep(0)

    async def main():
        kept = []
        for turn in range(5):
            values = [10.0 * turn + n for n in range(3)]
            await asyncio.gather(*(task(value, kept) for value in values))
        assert len(named()) == 3
        assert all(view.tolist() == [value] * 100 for value, view in kept)
        with pytest.raises(BufferError, match="can't be closed"):
            ndx.workspace("step").close()
        kept.clear()
        ndx.workspace("step").close()

    run(main)


def test_a_decorated_coroutine_function_in_tasks():
    @ndx.workspace("of a request")
    async def request(value):
        x = ndx.full(10, value)
        await asyncio.sleep(0)
        return x + 1

    async def main():
        for _ in range(3):
            found = await asyncio.gather(*(request(float(n)) for n in range(4)))
            assert [x.tolist()[0] for x in found] == [1.0, 2.0, 3.0, 4.0]
            assert not any(x.attached for x in found)
        assert len(named("of a request")) == 4

    run(main)

"""Many threads and tasks at once: no cross-talk, and counters that are exact."""

import asyncio
import contextlib
import random
import threading

import numpy as np
import pytest
from helpers.nd4j import lines
from helpers.threads import in_thread, run_in_thread

import ndx

pytestmark = pytest.mark.threads

THREADS = 32
TASKS = 100
CYCLES = 20


def check_counters(workspace, cycle_bytes, arrays):
    """Check what a workspace counted in its cycles of so many arrays each."""
    stats = workspace.stats()
    expected = {
        "cycles": CYCLES,
        "generation": CYCLES + 1,
        "size": cycle_bytes,
        "offset": 0,
        "cycle_bytes": cycle_bytes,
        "last_cycle_bytes": cycle_bytes,
        "max_cycle_bytes": cycle_bytes,
        "spilled_count": 0,
        # The first cycle, before there was an arena.
        "total_spills": arrays,
        "pinned_count": 0,
        "escaped_count": 0,
    }
    assert {key: stats[key] for key in expected} == expected


@in_thread
def test_32_threads_with_a_workspace_each():
    backend = ndx.backends.get("host", limit="256MiB")
    barrier = threading.Barrier(THREADS)
    good = []

    def work(number):
        rng = random.Random(number)
        barrier.wait()
        with ndx.use(backend):
            workspace = ndx.workspace("step", overallocation=0)
            for cycle in range(CYCLES):
                with ndx.workspace("step") as entered:
                    assert entered is workspace
                    value = float(1000 * number + cycle)
                    arrays = [ndx.full(100 + number, value) for _ in range(5)]
                    if rng.random() < 0.5:
                        barrier.wait()
                    else:
                        barrier.wait()
                        rng.random()
                    assert all((np.asarray(x) == value).all() for x in arrays)
                    # Views of NumPy were dropped before the scope ended.
        check_counters(workspace, 5 * lines(100 + number), 5)
        barrier.wait()
        if number == 0:
            # An arena for each thread, and nothing else.
            good.append(backend.stats()["allocated_count"] == THREADS)
        barrier.wait()
        workspace.destroy()
        good.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert good[0] is True
    assert sorted(good[1:]) == list(range(THREADS))
    assert backend.stats()["allocated_bytes"] == 0
    total = 5 * THREADS + THREADS
    assert backend.stats()["total_allocations"] == total


class Inside:
    """The workspaces of one name that tasks are in, and the most at once."""

    def __init__(self):
        self.now = set()
        self.ever = set()
        self.most = 0

    @contextlib.contextmanager
    def __call__(self, workspace):
        with workspace as mine:
            # No two tasks are ever in the same one.
            assert mine not in self.now
            self.now.add(mine)
            self.ever.add(mine)
            self.most = max(self.most, len(self.now))
            yield mine
            self.now.remove(mine)

    def check(self, cycles, cycle_bytes):
        """Check that there are as many as there were at once, and what they counted."""
        assert len(self.ever) == self.most
        assert {each.number for each in self.ever} == {*range(self.most)}
        assert sum(each.stats()["cycles"] for each in self.ever) == cycles
        for each in self.ever:
            stats = each.stats()
            assert stats["generation"] == stats["cycles"] + 1
            assert (stats["size"], stats["total_spills"]) == (cycle_bytes, 0)
            assert stats["max_cycle_bytes"] <= cycle_bytes
            assert (stats["pinned_count"], stats["escaped_count"]) == (0, 0)


def test_100_tasks_that_interleave():
    backend = ndx.backends.get("host", limit="256MiB")
    most = lines(50 + TASKS)
    outers, inners = Inside(), Inside()

    async def work(number):
        rng = random.Random(number)
        outer = ndx.workspace("outer", size=2 * most, backend=backend)
        inner = ndx.workspace("inner", size=most, backend=backend)
        for cycle in range(CYCLES):
            value = float(1000 * number + cycle)
            with outers(outer):
                x = ndx.full(50 + number, value)
                await pause(rng)
                with inners(inner):
                    y = x + 1
                    await pause(rng)
                    kept = y.leverage()
                    assert y.workspace == "inner"
                    await pause(rng)
                await pause(rng)
                assert kept.workspace == "outer"
                assert x.tolist() == [value] * (50 + number)
                assert kept.tolist() == [value + 1] * (50 + number)
            assert not kept.in_scope
            await pause(rng)

    async def pause(rng):
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)

    async def main():
        await asyncio.gather(*(work(number) for number in range(TASKS)))
        outers.check(TASKS * CYCLES, 2 * most)
        inners.check(TASKS * CYCLES, most)
        found = ndx.memory.workspaces()
        assert {each for each in found if each.name == "outer"} == outers.ever
        ndx.workspace("outer").destroy()
        ndx.workspace("inner").destroy()

    run_in_thread(asyncio.run, main())
    assert 1 < inners.most <= outers.most <= TASKS
    assert backend.stats()["allocated_bytes"] == 0
    # Each arena, and nothing else.
    assert backend.stats()["total_allocations"] == outers.most + inners.most


def test_tasks_and_threads_of_one_name():
    """Of a name, a thread has as many as its tasks are in at once, and no more."""
    together = 10

    async def work(value):
        with ndx.workspace("step", size=lines(10)) as mine:
            x = ndx.full(10, value)
            await asyncio.sleep(0)
            assert x.tolist() == [value] * 10
        return mine

    async def main(own):
        for _ in range(3):
            # One after the other: all are in the thread's own.
            assert await asyncio.create_task(work(0.5)) is own
        for _ in range(2):
            # They interleave: one is in the thread's own, the others in siblings.
            tasks = (work(float(number)) for number in range(together))
            seen = await asyncio.gather(*tasks)
            assert len({id(mine) for mine in seen}) == together
            assert own in seen
            found.extend(seen)
        assert await asyncio.create_task(work(0.5)) is own

    def thread():
        own = ndx.workspace("step", size=lines(10))
        asyncio.run(main(own))
        assert ndx.workspace("step") is own
        good.append(own)

    found, good = [], []
    threads = [threading.Thread(target=thread) for _ in range(8)]
    for running in threads:
        running.start()
    for running in threads:
        running.join()
    assert len({id(own) for own in good}) == 8
    # The second time, each thread's tasks were in those of the first time.
    every = set(found)
    assert len(every) == 8 * together
    assert {*good} <= every
    cycles = [workspace.stats()["cycles"] for workspace in every]
    assert sorted(cycles) == sorted(8 * [6] + 8 * (together - 1) * [2])

"""Many threads and tasks at once: no cross-talk, and counters that are exact."""

import asyncio
import random
import threading

import numpy as np
from helpers.nd4j import lines
from helpers.threads import in_thread, run_in_thread

import ndx

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


def test_100_tasks_that_interleave():
    backend = ndx.backends.get("host", limit="256MiB")

    async def work(number, seen):
        rng = random.Random(number)
        outer = ndx.workspace("outer", overallocation=0, backend=backend)
        inner = ndx.workspace("inner", overallocation=0, backend=backend)
        for cycle in range(CYCLES):
            value = float(1000 * number + cycle)
            with outer:
                x = ndx.full(50 + number, value)
                await pause(rng)
                with inner:
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
        seen.update((outer, inner))
        check_counters(outer, 2 * lines(50 + number), 2)
        check_counters(inner, lines(50 + number), 1)
        outer.destroy()
        inner.destroy()

    async def pause(rng):
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(0)

    async def main():
        seen = set()
        await asyncio.gather(*(work(number, seen) for number in range(TASKS)))
        assert len(seen) == 2 * TASKS

    run_in_thread(asyncio.run, main())
    assert backend.stats()["allocated_bytes"] == 0
    # Each arena and each array of a first cycle; nothing later.
    assert backend.stats()["total_allocations"] == TASKS * (2 + 3)


def test_tasks_and_threads_of_one_name():
    """A name, asked for in tasks of many threads: all are different."""

    async def work():
        with ndx.workspace("step", size=lines(10)) as workspace:
            x = ndx.full(10, float(id(workspace) % 1000))
            await asyncio.sleep(0)
            assert float(x[9]) == id(workspace) % 1000
        return workspace

    async def main():
        return await asyncio.gather(*(work() for _ in range(10)))

    def thread():
        own = ndx.workspace("step", size=lines(20))
        found.extend([own, *asyncio.run(main())])
        assert ndx.workspace("step") is own

    found = []
    threads = [threading.Thread(target=thread) for _ in range(8)]
    for running in threads:
        running.start()
    for running in threads:
        running.join()
    assert len({id(workspace) for workspace in found}) == 8 * 11
    assert sum(workspace.stats()["cycles"] for workspace in found) == 8 * 10

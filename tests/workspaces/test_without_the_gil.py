"""Threads that share arrays and scopes at once."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "each thread has a workspace of its own": """
    def work():
        workspace = ndx.workspace("own")
        for _ in range(ROUNDS):
            with workspace:
                x = ndx.ones(50) * 0.5 + 1
                assert float(ndx.sum(x)) == 75
    run(work, work, work)
    """,
    "threads read one array": """
    x = ndx.arange(1000, dtype=ndx.float64)
    def read():
        for _ in range(ROUNDS):
            assert float(ndx.sum(x + 1)) == 500500
    run(read, read, read)
    """,
    "threads view and export one array": """
    x = ndx.arange(1000, dtype=ndx.float64)
    def view():
        for i in range(ROUNDS):
            assert np.asarray(x[i % 500:])[0] == i % 500
    def export():
        for _ in range(ROUNDS):
            with memoryview(x[::2]) as buffer:
                assert buffer.shape == (500,)
    run(view, export, view, export)
    """,
    "an array is closed while another thread reads it": """
    def once():
        x = ndx.ones(500)
        def read():
            try:
                for _ in range(50):
                    assert float(ndx.sum(x)) == 500
            except ndx.StaleArrayError:
                pass
        def close():
            for _ in range(20):
                try:
                    return x.close()
                except BufferError:
                    pass
        run(read, close)
    for _ in range(ROUNDS // 50):
        once()
    """,
    "a scope ends while another thread reads its array": """
    def own():
        workspace = ndx.workspace("own")
        for i in range(ROUNDS):
            with workspace:
                box[0] = ndx.full(200, float(i))
                box[0] + 1
        over.set()
    def read():
        while not over.is_set():
            x = box[0]
            try:
                if x is not None:
                    low, high = float(ndx.min(x)), float(ndx.max(x))
                    assert low == high, (low, high)
            except ndx.StaleArrayError:
                pass
    run(own, read)
    """,
    "another thread drops the arrays of a scope": """
    given = queue.SimpleQueue()
    def own():
        workspace = ndx.workspace("own", POLICY)
        for _ in range(ROUNDS):
            with workspace:
                for _ in range(3):
                    given.put(ndx.ones(100))
        given.put(None)
    def drop():
        while (x := given.get()) is not None:
            try:
                x + 1
            except ndx.StaleArrayError:
                pass
            del x
    run(own, drop)
    """,
    "arrays leave a scope while another thread reads them": """
    def own():
        workspace = ndx.workspace("own", escape="detach")
        for i in range(ROUNDS):
            with workspace:
                box[0] = ndx.full(300, float(i))
            assert float(box[0][5]) == i
        over.set()
    def read():
        while not over.is_set():
            x = box[0]
            if x is not None:
                low, high = float(ndx.min(x)), float(ndx.max(x))
                assert low == high, (low, high)
    run(own, read)
    """,
    "threads look at, destroy and empty the workspaces of others": """
    from ndx.backends._pressure import release_idle_arenas
    def own():
        workspace = ndx.workspace("own")
        for i in range(ROUNDS):
            with workspace:
                x = ndx.full(500, float(i)) * 2
                with ndx.use("host"), workspace:
                    y = x + 1
                assert float(x[5]) == 2 * i and float(y[499]) == 2 * i + 1
        over.set()
    def destroy():
        while not over.is_set():
            ndx.memory.destroy_all(all_threads=True, trim=False)
            release_idle_arenas()
    def look():
        while not over.is_set():
            ndx.memory.workspace_summary(all_threads=True)
            for each in ndx.memory.workspaces(all_threads=True):
                each.size, each.generation, each.backend, each.is_open_here
    run(own, own, destroy, look)
    """,
    "a generator with a scope is closed in another thread": """
    given = queue.SimpleQueue()
    def inside(workspace):
        with workspace:
            yield ndx.ones(30)
    def own():
        for i in range(2 * ROUNDS):
            generator = inside(ndx.workspace(f"{i % 5}"))
            assert float(next(generator)[3]) == 1
            given.put(generator)
            del generator
            with ndx.workspace("inner"):
                assert float(ndx.ones(10)[1]) == 1
        given.put(None)
    def close():
        while (generator := given.get()) is not None:
            generator.close()
    run(own, close)
    """,
    "a generator is closed while its own thread enters the same workspace": """
    given = queue.SimpleQueue()
    def inside(workspace):
        with workspace:
            yield
    def own():
        workspace = ndx.workspace("entered")
        for _ in range(ROUNDS // 10):
            generator, closed = inside(workspace), []
            next(generator)
            given.put((generator, closed))
            del generator
            while not closed:
                with workspace, workspace:
                    pass
            assert ndx.current_workspace() is None
        given.put(None)
    def close():
        while (one := given.get()) is not None:
            one[0].close()
            one[1].append(True)
    run(own, close)
    """,
    "threads end within scopes that two others destroy": """
    def own():
        for _ in range(ROUNDS // 20):
            thread = threading.Thread(
                target=lambda: ndx.workspace("left").__enter__()
            )
            thread.start()
            thread.join()
        over.set()
    def destroy():
        while not over.is_set():
            ndx.memory.destroy_all(all_threads=True)
    run(own, destroy, destroy)
    ndx.memory.destroy_all(all_threads=True)
    assert not [x for x in ndx.memory.workspaces(all_threads=True) if x.is_open]
    """,
    "default settings are replaced": """
    def replace():
        for i in range(20 * ROUNDS):
            config = ndx.WorkspaceConfig(size=4096 + 64 * (i % 50))
            ndx.memory.default_workspace_config(config)
            ndx.memory.debug_mode("".join(("o", "ff")))
        over.set()
    def look():
        while not over.is_set():
            assert ndx.memory.default_workspace_config().size % 64 == 0
            assert ndx.memory.debug_mode() == "off"
    run(replace, look, look)
    """,
    "small arrays of all threads": """
    def work():
        for _ in range(ROUNDS):
            y = ndx.arange(20, dtype=ndx.float64) * 2 + 1
            assert float(y[3:7][0]) == 7
            assert y.tolist()[:2] == [1, 3]
    run(work, work, work, work)
    """,
}
PROGRAMS["another thread drops planned arrays"] = PROGRAMS[
    "another thread drops the arrays of a scope"
].replace("POLICY", 'learn="liveness"')
PROGRAMS["another thread drops the arrays of a scope"] = PROGRAMS[
    "another thread drops the arrays of a scope"
].replace(", POLICY", "")


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

"""Threads that call, record and forget one fused function at once."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "threads record and forget": """
    @ndx.fuse
    def f(a, b, k="x"):
        return (a - b) ** 2 / (a + b)
    def work():
        x, y = ndx.ones(20), ndx.full(20, 3.0)
        for i in range(10 * ROUNDS):
            assert float(f(x, y)[3]) == 1
            if i % 7 == 0:
                n = i % 23 + 1
                assert f(ndx.ones(n), ndx.full(n, 3.0), k=str(i % 300)).shape == (n,)
        over.set()
    def forget():
        while not over.is_set():
            f.clear()
            f.explain()
    run(work, work, forget, forget)
    """,
    "a thread changes what is read from outside": """
    table = {"a": 1.5, "b": [1.0]}
    scale = ndx.full(20, 2.0)
    @ndx.fuse
    def f(x):
        return x * scale + table["a"] + table["b"][0]
    def work():
        x = ndx.ones(20)
        for _ in range(5 * ROUNDS):
            assert float(f(x)[3]) > 0
        over.set()
    def change():
        global scale
        i = 0
        while not over.is_set():
            i += 1
            scale = ndx.full(20, i % 5 + 1.0)
            table["a"] = i % 3 + 1e5
            table["b"] = [float(i)]
            for k in range(i % 50):
                table[k] = k
            for k in range(i % 50):
                del table[k]
    run(work, work, change)
    """,
    "the first calls come at once": """
    for _ in range(ROUNDS // 100):
        @ndx.fuse
        def f(a, b):
            return (a - b) ** 2 / (a + b)
        barrier = threading.Barrier(4)
        def work():
            x = ndx.ones(20)
            barrier.wait()
            assert float(f(x, ndx.full(20, 3.0))[3]) == 1
            assert float(f(x, 3.0)[3]) == 1
        run(work, work, work, work)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

"""Threads that share backends, buffers, kinds of devices and engines."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "backends count": """
    class ByteArrays(ndx.backends.PythonBackend):
        def acquire(self, nbytes):
            return bytearray(nbytes)
    def work():
        with ndx.use(backend):
            for i in range(3 * ROUNDS):
                ndx.empty(2000 + i)
    for backend in (
        ByteArrays(limit="100MiB"),
        ndx.memory.LimitingAdaptor("host", "100MiB"),
        ndx.memory.TrackingAdaptor("host", stacks=False),
        ndx.backends.get("simulated", capacity="100MiB"),
    ):
        run(work, work)
        stats = backend.stats()
        assert stats["allocated_bytes"] == stats["allocated_count"] == 0
        assert stats["total_allocations"] == 6 * ROUNDS
    """,
    "a limit is exact": """
    import random
    limit = 2**20
    backend = ndx.backends.HostBackend(limit=limit)
    refused = []
    def work():
        rng, kept = random.Random(threading.get_ident()), []
        with ndx.use(backend):
            for _ in range(ROUNDS):
                try:
                    kept.append(ndx.empty(rng.choice((1, 100, 900, 5000, 20000))))
                except ndx.OutOfMemoryError:
                    refused.append(len(kept))
                    kept.clear()
                if len(kept) > 12:
                    del kept[rng.randrange(12)]
                assert backend.stats()["reserved_bytes"] <= limit
    run(*[work] * 8)
    stats = backend.stats()
    assert refused and stats["peak_reserved_bytes"] <= limit
    assert stats["allocated_bytes"] == stats["allocated_count"] == 0
    assert stats["total_allocations"] >= 8 * ROUNDS - len(refused)
    """,
    "a buffer is released twice": """
    def release():
        barrier.wait()
        buffer.release()
    for _ in range(ROUNDS // 20):
        barrier = threading.Barrier(2)
        buffer = ndx.backends.Buffer("host", 1000)
        run(release, release)
    """,
    "an engine is made once": """
    import time
    from ndx._array.engine import load_engine
    from ndx._lib.device import KINDS, kind_named
    class Engine(ndx.engines.Engine):
        def __init__(self):
            made.append(self)
            time.sleep(0.05)
        def compute(self, *args, **kwargs):
            pass
        elementwise = get_item = set_item = fill = copy_into = compute
        upload = to_device = compute
    made = []
    barrier = threading.Barrier(4)
    ndx.engines.register("toy", Engine)
    def load():
        barrier.wait()
        assert load_engine(kind_named("toy")) is made[0]
    run(load, load, load, load)
    assert len(made) == 1
    def name(k):
        def name():
            barrier.wait()
            kind_named(f"kind{k}")
        return name
    for i in range(20):
        run(*map(name, range(4 * i, 4 * i + 4)))
    assert len({kind.first for kind in KINDS}) == len(KINDS)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

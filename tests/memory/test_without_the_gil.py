"""Threads that make and drop arrays while recordings begin, run and end."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "threads are recorded": """
    def work(rows):
        def work():
            barrier.wait()
            for i in range(10 * ROUNDS):
                ndx.ones((rows, 30 + i))
        return work
    barrier = threading.Barrier(3)
    with ndx.memory.record(max_events=10**6) as trace:
        run(work(2), work(3), work(5))
    found = trace.to_dict()
    arrays = found["arrays"]
    assert len(arrays["born"]) == 30 * ROUNDS
    assert None not in arrays["died"]
    for number, nbytes in zip(arrays["shape"], arrays["nbytes"]):
        shape = found["shapes"][number]
        assert shape[0] * shape[1] * 8 == nbytes
    """,
    "shapes change in place while arrays are listed": """
    def work():
        x = ndx.zeros(64)
        for i in range(20 * ROUNDS):
            x.shape = (2,) * 6
            x.shape = (64,)
        over.set()
    def look():
        while not over.is_set():
            ndx.memory.live()
    run(work, look)
    """,
    "recordings begin and end": """
    def work():
        for i in range(5 * ROUNDS):
            box[0] = ndx.ones(20 + i % 37) * 2
        over.set()
    def scopes():
        workspace = ndx.workspace("own", escape="detach")
        while not over.is_set():
            with workspace:
                box[0] = ndx.ones(100)
    def record():
        while not over.is_set():
            with ndx.memory.record(max_events=64, stacks=2) as trace:
                box[0] = ndx.ones(10)
            trace.to_dict()
    run(work, scopes, record, record)
    """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(PROGRAMS[name])

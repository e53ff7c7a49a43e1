"""Threads that share arrays in files."""

import pytest
from helpers.together import run_together

PROGRAMS = {
    "a file is closed": """
    path = os.path.join(folder.name, "x.npy")
    ndx.save(path, ndx.arange(16.0))
    def write(x):
        x[0] = 1.0
    calls = ("r+", ndx.NDArray.flush), ("c", ndx.NDArray.commit), ("r", write)
    def use():
        while not over.is_set():
            try:
                call(box[0])
            except (ValueError, ndx.StaleArrayError):
                pass
    def close():
        for _ in range(ROUNDS):
            x = box[0] = ndx.open(path, mode)
            try:
                x.close()
            except BufferError:
                pass
        over.set()
    for mode, call in calls:
        box[0] = ndx.open(path, mode)
        over.clear()
        run(close, use)
    """,
}
FOLDER = """
    import os, tempfile
    folder = tempfile.TemporaryDirectory()
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_threads_share(name):
    run_together(FOLDER + PROGRAMS[name])

"""Forks, frozen backends and commits while a pass is running."""

import os

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.numpy_versions import needs_part
from helpers.sanitizers import counts_pages

import ndx

pytestmark = [
    needs_part("loops"),
    pytest.mark.threads,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork"),
]

ROWS, COLUMNS = 2048, 1024


@pytest.fixture
def backend(tmp_path):
    return ndx.backends.MmapBackend(directory=tmp_path)


def once(action):
    """Return a progress callback that acts at its first call."""
    done = []

    def progress(*_):
        if not done:
            done.append(True)
            action()

    return progress


STEPS = {
    "whole": lambda x: x.__iadd__(1),
    "columns": lambda x: x[:, ::2].__iadd__(1),
    "reversed": lambda x: x[::-1, ::-1].__iadd__(1),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("step", STEPS)
def test_a_backend_is_frozen_during_a_pass(backend, step, threads):
    with ndx.use(backend):
        x = ndx.zeros((ROWS, COLUMNS))
    with ndx.passes(
        progress=once(backend.freeze), block="256KiB", threads=threads, memory="1MiB",
        threshold=0,
    ):  # fmt: skip
        STEPS[step](x)
    expected = np.zeros((ROWS, COLUMNS))
    STEPS[step](expected)
    assert np.array_equal(np.asarray(x), expected)


@pytest.mark.parametrize("memory", [None, "1MiB"])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_fork_during_a_pass(backend, threads, memory):
    """The child does not write to its parent's file, nor does it crash."""
    with ndx.use(backend):
        x = ndx.zeros((ROWS, COLUMNS))
    children = []
    passing = {} if memory is None else {"memory": memory}
    complete = lost = False

    def fork():
        children.append(os.fork())
        if children[0]:
            assert os.waitpid(children[0], 0)[1] == 0

    try:
        with ndx.passes(
            progress=once(fork), block="256KiB", threads=threads, threshold=0,
            **passing,
        ):  # fmt: skip
            x += 1
    except RuntimeError as error:
        lost = "none of its threads" in str(error)
    finally:
        if children[0] == 0:
            complete = bool(ndx.all(x == 1))
            # Other threads may have computed the rest before the fork.
            os._exit(not (complete or (lost and threads > 1)))
    assert np.all(np.asarray(x) == 1)


@pytest.mark.parametrize("threads", [1, 4])
def test_a_commit_during_a_pass(tmp_path, threads):
    path = tmp_path / "x.npy"
    ndx.save(path, ndx.zeros(4 << 20))
    x = ndx.open(path, "c")
    committed = []

    def progress(*_):
        if len(committed) < 2:
            committed.append(True)
            x.commit()

    with ndx.passes(progress=progress, block="1MiB", threads=threads, threshold=0):
        x += 1
    assert committed
    assert np.all(np.asarray(x) == 1)
    x.commit()
    assert np.all(np.load(path) == 1)


@counts_pages
def test_children_with_less_memory_than_the_mapping(tmp_path):
    """The address space of a pool's file is far larger than the file."""
    printed = run_python(
        """
        import os, resource, sys
        import ndx
        with ndx.use("mmap", directory=sys.argv[1]):
            x = ndx.ones(1_000_000)
            y = ndx.ones(10)
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, -1))
        pid = os.fork()
        if pid == 0:
            read = float(x[0]) + float(y[0]) == 2
            x[:] = 7.0
            y[:] = 7.0
            os._exit(not read or float(x[-1]) != 7)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(status, float(ndx.max(x)), float(ndx.max(y)))
        """,
        tmp_path,
    )
    assert printed.split() == ["0", "1.0", "1.0"]


def test_freezes_beside_forks(tmp_path):
    """They take the locks of the pools and of the mappings in different orders."""
    run_python(
        """
        import os, sys, threading
        import ndx
        backend = ndx.backends.MmapBackend(directory=sys.argv[1])
        with ndx.use(backend):
            x = ndx.ones(1000)
        going_on = True
        def freeze():
            while going_on:
                backend.freeze()
        threads = [threading.Thread(target=freeze) for _ in range(2)]
        for each in threads:
            each.start()
        for _ in range(100):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)
        going_on = False
        for each in threads:
            each.join()
        """,
        tmp_path,
    )

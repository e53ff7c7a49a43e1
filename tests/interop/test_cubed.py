"""cubed computes with ndx, or `ndx.numpy`, as the namespace of its chunks."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import PACKAGE

pytest.importorskip("cubed")

PROGRAM = Path(__file__).parents[1] / "helpers" / "cubed_calls.py"


@pytest.fixture
def run(tmp_path):
    """Return a function that runs the program in a folder of its own.

    cubed writes a history of its plans to the current one.
    """
    return functools.partial(start, tmp_path)


def start(folder, namespace, *arguments):
    environment = {
        "CUBED_BACKEND_ARRAY_API_MODULE": namespace,
        "DASK_TEMPORARY_DIRECTORY": str(folder),
        "PYTHONPATH": PACKAGE,
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, *arguments],
        env={**os.environ, **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.threads
@pytest.mark.parametrize(("namespace", "count"), [("ndx", 43), ("ndx.numpy", 48)])
def test_computes_ndarrays(run, namespace, count):
    assert run(namespace, "threads") == count


@pytest.mark.nightly
@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_executors_of_processes(run, executor):
    if executor == "dask":
        pytest.importorskip("distributed")
    assert run("ndx.numpy", executor, "map_blocks", "mean") == 2

"""cubed computes with ndx, or `ndx.numpy`, as the namespace of its chunks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.commands import PACKAGE

pytest.importorskip("cubed")

PROGRAM = Path(__file__).parents[1] / "helpers" / "cubed_calls.py"


def run(namespace, *arguments):
    environment = {"CUBED_BACKEND_ARRAY_API_MODULE": namespace, "PYTHONPATH": PACKAGE}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.parametrize(("namespace", "count"), [("ndx", 43), ("ndx.numpy", 48)])
def test_computes_ndarrays(namespace, count):
    assert run(namespace, "threads") == count


@pytest.mark.parametrize("executor", ["processes", "dask"])
def test_executors_of_processes(executor):
    if executor == "dask":
        pytest.importorskip("distributed")
    assert run("ndx.numpy", executor, "map_blocks", "mean") == 2

"""mpi4py sends and receives NDArrays as buffers, and pickles them."""

import shutil
import subprocess
import sys

import pytest

pytest.importorskip("mpi4py")

# MPI can be started once in a process.
PROGRAM = """
import numpy as np
import ndx
from mpi4py import MPI
from ndx.testing import assert_equal

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right, left = (rank + 1) % size, (rank - 1) % size

# Buffers, without copies, of several dtypes.
for dtype in (ndx.float64, ndx.float32, ndx.int32, ndx.complex128):
    x = ndx.full((3, 4), rank, dtype=dtype)
    y = ndx.empty((3, 4), dtype=dtype)
    world.Sendrecv(x, right, recvbuf=y, source=left)
    assert_equal(y, np.full((3, 4), left, dtype=dtype))

# Collective operations.
total = ndx.empty(5)
world.Allreduce(ndx.arange(5.0) + rank, total, op=MPI.SUM)
assert_equal(total, size * np.arange(5.0) + sum(range(size)))
parts = ndx.empty((size, 2))
world.Allgather(ndx.full(2, float(rank)), parts)
assert_equal(parts, np.repeat(np.arange(float(size)), 2).reshape(size, 2))
x = ndx.arange(6.0) if rank == 0 else ndx.empty(6)
world.Bcast(x, root=0)
assert_equal(x, np.arange(6.0))

# In a file: the memory is mapped, and the buffer is that memory.
with ndx.use("mmap"):
    x = ndx.full(4, float(rank))
world.Allreduce(MPI.IN_PLACE, x, op=MPI.MAX)
assert_equal(x, np.full(4, size - 1.0))

# Objects, by pickle, into the current backend.
with ndx.use("host", limit="1MiB") as backend:
    found = world.sendrecv({"x": ndx.full(3, rank)}, right, source=left)
    assert_equal(found["x"], np.full(3, left))
    assert found["x"].backend is backend

# A request that is not finished pins the memory of a workspace.
with ndx.workspace("step", size="1KiB"):
    x = ndx.full(10, float(rank))
    y = ndx.empty(10)
    requests = [world.Irecv(y, left), world.Isend(x, right)]
    MPI.Request.Waitall(requests)
    assert_equal(y, np.full(10, float(left)))

# Stale arrays are refused, before anything is sent.
try:
    world.Send(x, right)
except ndx.StaleArrayError:
    print("passed", flush=True)
"""


def run(*command):
    done = subprocess.run(
        [*command, sys.executable, "-W", "ignore", "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_process_with_itself():
    assert run() == ["passed"]


def test_two_processes():
    mpiexec = shutil.which("mpiexec", path=f"{sys.prefix}/bin") or shutil.which(
        "mpiexec"
    )
    if mpiexec is None:
        pytest.skip("there is no mpiexec")
    assert run(mpiexec, "-n", "2") == ["passed"] * 2

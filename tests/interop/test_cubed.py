"""cubed computes with ndx, or `ndx.numpy`, as the namespace of its chunks."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("cubed")

# cubed reads its configuration when it is imported.
PROGRAM = """
import sys
import numpy as np
import ndx
import cubed
import cubed.array_api as xp

data = np.random.default_rng(1).random((6, 4))
kinds = set()
a = xp.asarray(data, chunks=(2, 3))

def seen(block):
    kinds.add(type(block))
    return block * 2

calls = {
    "asarray": (lambda: xp.asarray(ndx.asarray(data), chunks=(2, 3)), data),
    "from_array": (lambda: cubed.from_array(ndx.asarray(data), chunks=(2, 3)), data),
    "add": (lambda: a + 1, data + 1),
    "argmax": (lambda: xp.argmax(a, axis=0), data.argmax(axis=0)),
    "index": (lambda: a[1:5, [2, 0]], data[1:5, [2, 0]]),
    "map_blocks": (lambda: cubed.map_blocks(seen, a, dtype=a.dtype), data * 2),
    "matmul": (lambda: xp.matmul(a, xp.permute_dims(a, (1, 0))), data @ data.T),
    "mean": (lambda: xp.mean(a, axis=0), data.mean(axis=0)),
    "rechunk": (lambda: a.rechunk((3, 2)), data),
    "sum": (lambda: xp.sum(a, axis=1), data.sum(axis=1)),
    "where": (lambda: xp.where(a > 0.5, a, -a), np.where(data > 0.5, data, -data)),
}
beyond = {
    "nanmean": (lambda: cubed.nanmean(a, axis=0), data.mean(axis=0)),
    "std": (lambda: xp.std(a, axis=0), data.std(axis=0)),
}
if sys.argv[1] == "ndx.numpy":
    calls |= beyond
for name, (call, expected) in calls.items():
    found = call().compute()
    assert type(found) is ndx.NDArray, (name, type(found))
    np.testing.assert_allclose(np.asarray(found), expected, err_msg=name)
assert kinds == {ndx.NDArray}, kinds
"""


@pytest.mark.parametrize("namespace", ["ndx", "ndx.numpy"])
def test_computes_ndarrays(namespace):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, namespace]
    environment = {**os.environ, "CUBED_BACKEND_ARRAY_API_MODULE": namespace}
    subprocess.run(command, check=True, env=environment)

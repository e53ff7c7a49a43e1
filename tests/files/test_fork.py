"""Forked children: what they compute on, and write to, is their own."""

import sys

import pytest
from helpers.commands import run_python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")


@pytest.mark.parametrize("memory", ["1GiB", "0"])
@pytest.mark.parametrize("kind", ["backend", "workspace"])
def test_a_forked_child_has_copies_of_its_own_in_passes(tmp_path, kind, memory):
    code = """
import os, sys, numpy as np, ndx
kind, memory, directory = sys.argv[1:]
n = 300_000
if kind == "backend":
    scope = ndx.use("mmap", directory=directory)
else:
    scope = ndx.workspace("w", size="32MiB", path=directory + "/w")
with scope, ndx.passes(threshold=0, memory=memory, block="64KiB"):
    x, y, z = ndx.full(n, 1.0), ndx.full(n, 2.0), ndx.full(n, 3.0)
    rows = ndx.full((1, n), 4.0)
    u = ndx.asarray(np.arange(n)[::-1], copy=True)
    if (pid := os.fork()) == 0:
        np.asarray(x)[:] = 7.0
        y *= 10
        with ndx.use("host"):
            z[...] = x + 1
            print(float(ndx.sum(x)) / n, float(ndx.max(y)), float(ndx.min(z)))
            print(float(ndx.sum(ndx.max(rows, axis=0))) / n, float(ndx.sum(u + 0)))
            ndx.add(x, y, out=x)
            print(float(ndx.sum(x)) / n, float(x[0]), float(x[-1]))
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    with ndx.use("host"):
        print(float(ndx.sum(x)) / n, float(ndx.max(y)), float(ndx.min(z)))
"""
    words = run_python(code, kind, memory, tmp_path).split()
    total = 300_000 * 299_999 / 2
    child = [7, 20, 8, 4, total, 27, 27, 27]
    assert [float(word) for word in words] == [*child, 1, 2, 3]


@pytest.mark.parametrize("memory", ["1GiB", "0"])
def test_a_forked_child_computes_as_its_parent(tmp_path, memory):
    """Whatever passes over its parent's arrays, and writes to them."""
    code = """
import os, sys, numpy as np, ndx
n = 40_000
directory, memory = sys.argv[1:]
values = np.linspace(0.01, 0.99, n)
calls = {name: (lambda x, f=getattr(ndx, name): f(x)) for name in (
    "abs acos asin atan cos exp expm1 floor isfinite isnan log log1p negative sign "
    "signbit sin sqrt square tanh trunc sum prod max min mean var any all argmax "
    "count_nonzero cumulative_sum cumulative_prod sort diff flip").split()}
calls |= {
    "add": lambda x: x + x, "pow": lambda x: x**0.5, "where": lambda x: ndx.where(
        x > 0.5, x, 0.0), "matmul": lambda x: ndx.reshape(x, (200, 200)) @ x[:200],
    "floor_divide": lambda x: x // 0.1, "astype": lambda x: ndx.astype(x, ndx.float32),
    "rows": lambda x: ndx.max(ndx.reshape(x, (1, n)), axis=0),
}
host = ndx.asarray(values, copy=True)
expected = {name: np.array(call(host)) for name, call in calls.items()}
with ndx.use("mmap", directory=directory), ndx.passes(
        threshold=0, memory=memory, block="64KiB"):
    x = ndx.asarray(values, copy=True)
    outs = {name: ndx.full(answer.shape, 1, dtype=answer.dtype)
            for name, answer in expected.items()}
    turned = ndx.full(n, 0.0)[::-1]
    if (pid := os.fork()) == 0:
        with ndx.use("host"):
            for name, call in calls.items():
                for _ in range(2):
                    found = call(x)
                    np.testing.assert_allclose(np.asarray(found), expected[name],
                                               rtol=1e-12, err_msg=name)
                    outs[name][...] = found
                    assert bool(ndx.all(ndx.equal(outs[name], found))), name
            ndx.multiply(x, 2.0, out=turned)
            np.testing.assert_array_equal(np.asarray(turned), values * 2)
            x += turned
            np.testing.assert_array_equal(np.asarray(x), values + values * 2)
            np.testing.assert_array_equal(np.asarray(x + 0.0), values + values * 2)
        print("child", flush=True)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    np.testing.assert_array_equal(np.asarray(x), values)
    assert not np.asarray(turned).any()
    for out in outs.values():
        assert (np.asarray(out) == 1).all()
    print("parent")
"""
    assert run_python(code, tmp_path, memory).split() == ["child", "parent"]


def test_a_forked_child_has_copies_of_its_own(tmp_path):
    code = """
import os, sys, ndx
backend = ndx.backends.MmapBackend(directory=sys.argv[1])
with ndx.use(backend):
    x, y = ndx.ones(100_000), ndx.ones(3)
    with ndx.workspace("w", backend=backend):
        z = ndx.ones(1000)
if (pid := os.fork()) == 0:
    x += 1
    y[...] = 9.0
    try:
        with ndx.use(backend):
            ndx.ones(3)
    except RuntimeError as error:
        print("fork" in str(error), float(ndx.sum(x)))
    del x, y
    backend.trim()
    print(float(ndx.sum(ndx.ones(7))), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(float(ndx.sum(x)), float(y[0]))
with ndx.use(backend):
    print(float(ndx.sum(ndx.ones(1000))))
"""
    words = run_python(code, tmp_path).split()
    assert words == ["True", "200000.0", "7.0", "100000.0", "1.0", "1000.0"]


def test_a_forked_child_has_nothing_to_flush(tmp_path):
    code = """
import os, sys, ndx
with ndx.workspace("state", path=sys.argv[1], size="1MiB") as ws:
    a = ndx.ones(10)
    if (pid := os.fork()) == 0:
        a[:] = 7
        try:
            ws.flush()
        except ndx.WorkspaceError as error:
            os._exit("forked child" not in str(error))
        os._exit(2)
    print(os.waitpid(pid, 0)[1])
    ws.flush()
"""
    assert run_python(code, tmp_path / "state.bin").split() == ["0"]

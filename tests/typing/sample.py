"""Typed code that uses ndx as users do; mypy --strict and pyright read it."""

from typing import assert_type

import numpy as np

import ndx
import ndx.numpy as face
from ndx.testing import assert_allclose


def normalized(x: ndx.NDArray) -> ndx.NDArray:
    return (x - ndx.mean(x, axis=0, keepdims=True)) / ndx.std(x, axis=0)


@ndx.use("host", limit="1GiB")
def answer(n: int) -> int:
    return n + 42


@ndx.fuse
def fused(x: ndx.NDArray, scale: float = 2.0) -> ndx.NDArray:
    return x * scale + 1


class Model:
    @ndx.fuse
    def apply(self, x: ndx.NDArray) -> tuple[ndx.NDArray, float]:
        return x + 1, 2.0


x = ndx.asarray([[1.0, 2.0], [3.0, 4.0]])
assert_type(x, ndx.NDArray)
assert_type(x + 1, ndx.NDArray)
assert_type(2.0**-x, ndx.NDArray)
assert_type(x @ x.T, ndx.NDArray)
assert_type(x == x, ndx.NDArray)
assert_type(x[0, ..., None], ndx.NDArray)
assert_type(x[x > 1], ndx.NDArray)
assert_type(x.shape, tuple[int, ...])
assert_type(float(x[0, 0]), float)
x += 1
x[:, 0] = 0.0
assert_type(x, ndx.NDArray)

assert_type(ndx.exp(x, out=x), ndx.NDArray)
assert_type(ndx.add(x, 1.0), ndx.NDArray)
assert_type(ndx.add(x, np.ones(2)), ndx.NDArray)
assert_type(ndx.clip(x, 0, max=1), ndx.NDArray)
assert_type(ndx.sum(x, axis=(0, 1), dtype=ndx.float32), ndx.NDArray)
assert_type(ndx.isdtype(x.dtype, "real floating"), bool)
assert_type(ndx.finfo(ndx.float32).eps, float)
assert_type(ndx.broadcast_shapes((2, 1), (3,)), tuple[int, ...])
assert_type(ndx.unique_counts(x).counts, ndx.NDArray)
assert_type(ndx.linalg.svd(x).S, ndx.NDArray)
assert_type(ndx.fft.rfft(x, n=4, norm="ortho"), ndx.NDArray)
assert_type(ndx.random.default_rng(7).normal(size=(2, 3)), ndx.NDArray)
assert_type(normalized(x), ndx.NDArray)
assert_type(answer(1), int)

with ndx.use("host") as backend:
    assert_type(backend, ndx.backends.Backend)
with ndx.use("mmap", directory="/scratch", limit="1GiB", keep_idle=0):
    assert_type(ndx.backends.get("mmap", directory="x"), ndx.backends.MmapBackend)
assert_type(ndx.set_default("host", pool="arena", limit=1), ndx.backends.HostBackend)
kind = "mmap" if answer(1) else "host"
assert_type(ndx.backends.get(kind, limit="1GiB"), ndx.backends.Backend)


class Shared(ndx.backends.PythonBackend):
    def __init__(self, *, advice: int = 0, limit: int | None = None) -> None:
        self.advice = advice

    def acquire(self, nbytes: int) -> bytearray:
        return bytearray(nbytes)


with ndx.use(Shared(advice=3)) as backend:
    ndx.ones(3)
with ndx.workspace("step", size="64MiB", learn="none") as ws:
    assert_type(ws, ndx.Workspace)
    kept = ndx.ones(3, dtype="float32").detach()
with ndx.use("host", limit="1GiB", numpy=True), ndx.memory.record(stacks=3) as trace:
    ndx.ones(3)
assert_type(trace, ndx.memory.Trace)
assert_type(trace.events[0].maker, str | None)
assert_type(ws.stats()["size"], int)
ndx.save("x.npy", x)
assert_type(ndx.load("x.npy"), ndx.NDArray)
stored = ndx.open(b"x.npy", "w+", shape=(2, 3), dtype="int8")
assert_type(stored, ndx.NDArray)
stored.flush()
with ndx.workspace("state", path="state.bin", size="1MiB") as state:
    state.flush()
assert_type(ndx.memory.allocated("host"), int)

assert_type(fused(x, scale=3.0), ndx.NDArray)
assert_type(Model().apply(x)[1], float)
assert_type(fused.explain(), str)
Model.apply.clear()
for batch in ndx.prefetch([np.ones(3)], depth=2, slots=4):
    assert_type(batch, ndx.NDArray)
    kept = batch.detach()
for pair in ndx.prefetch([(x, np.ones(3))]):
    assert_type(pair, tuple[ndx.NDArray, ...])
for named in ndx.prefetch({"x": np.ones(3)} for _ in range(2)):
    assert_type(named, dict[str, ndx.NDArray])
for item in ndx.prefetch([("a", x)]):
    assert_type(item, tuple[str, ndx.NDArray])

roles = ndx.Roles({"activations": "acts", "updater": ndx.WorkspaceConfig(size="1MiB")})
with roles.scope("activations"), ndx.use_workspaces(False):
    assert_type(roles.create("activations", (2, 3), fill=0), ndx.NDArray)
assert_type(ndx.WorkspacePlan("enabled", "none").training(), ndx.Roles)
classes = ndx.metrics.Classification(["cat", "dog"])
report = ndx.evaluate(lambda x: x, [(x, x)], classes, ndx.metrics.Mean(max))
assert_type(report, ndx.metrics.Report)
assert_type(classes.result().accuracy, float)
assert_allclose(kept, [1, 1, 1], rtol=1e-6)
try:
    ndx.empty(2**50)
except ndx.OutOfMemoryError as error:
    assert_type(error.limit, int | None)

# What is wrong is found: each of these ignores is needed, else mypy complains.
ndx.sum(x, 0)  # type: ignore[call-arg]
ndx.sum(x, keepdim=True)  # type: ignore[call-arg]
ndx.zeros(3).no_such_attribute  # type: ignore[attr-defined]  # noqa: B018
ndx.workspace("step", spill="never")  # type: ignore[arg-type]
ndx.workspace("step", sizes="1MiB")  # type: ignore[call-arg]
ndx.WorkspaceConfig(sizes="1MiB")  # type: ignore[call-arg]
ndx.WorkspacePlan("enable")  # type: ignore[arg-type]
fused(x, 2.0, 3)  # type: ignore[call-arg]
Model().apply(x, x)  # type: ignore[call-arg]
ndx.prefetch([x], slot=3)  # type: ignore[call-overload]
ndx.use("host", limits="1GiB")  # type: ignore[call-overload]
ndx.use("host", directory="/scratch")  # type: ignore[call-overload]
ndx.set_default("mmap", folder="/scratch")  # type: ignore[call-overload]
ndx.backends.get("cuda", device="0")  # type: ignore[call-overload]
ndx.no_such_name  # type: ignore[attr-defined]  # noqa: B018
ndx.linalg.no_such_name  # type: ignore[attr-defined]  # noqa: B018

y = face.zeros((2, 3), int)
assert_type(y, ndx.NDArray)
assert_type(y.sum(axis=0), ndx.NDArray)
assert_type(y.reshape(3, -1).T, ndx.NDArray)
assert_type(face.argsort(y, axis=-1), ndx.NDArray)
assert_type(face.allclose(y, 0), bool)
z: face.ndarray = face.add.reduce(y)

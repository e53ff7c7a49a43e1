"""A program: calls of cubed, in the namespace of chunks that the environment says.

cubed reads its configuration when it is imported, so that this has a process of its own
(`tests/interop/test_cubed.py`). The arguments are an executor of cubed, and names of
calls.
"""

import contextlib
import sys

import cubed
import cubed.array_api as xp
import numpy as np
from cubed.backend_array_api import xp_name

import ndx

DATA = np.random.default_rng(1).random((6, 4))
COUNTS = np.arange(12).reshape(6, 2)

# In the standard's namespace, and so computed by `ndx`.
STANDARD = {
    "abs": (lambda a, i: xp.abs(a - 1), abs(DATA - 1)),
    "add": (lambda a, i: a + 1, DATA + 1),
    "all": (lambda a, i: xp.all(a > 0.1, axis=0), (DATA > 0.1).all(axis=0)),
    "any": (lambda a, i: xp.any(a > 0.9, axis=1), (DATA > 0.9).any(axis=1)),
    "argmax": (lambda a, i: xp.argmax(a, axis=0), DATA.argmax(axis=0)),
    "argmin": (lambda a, i: xp.argmin(a, axis=1), DATA.argmin(axis=1)),
    "astype": (lambda a, i: xp.astype(a, xp.float32), DATA.astype(np.float32)),
    "bitwise_and": (lambda a, i: i & 3, COUNTS & 3),
    "broadcast_to": (
        lambda a, i: xp.broadcast_to(a, (2, 6, 4)),
        np.broadcast_to(DATA, (2, 6, 4)),
    ),
    "clip": (lambda a, i: xp.clip(a, 0.2, 0.8), DATA.clip(0.2, 0.8)),
    "concat": (lambda a, i: xp.concat([a, a], axis=0), np.concatenate([DATA, DATA])),
    "cumulative_sum": (lambda a, i: xp.cumulative_sum(a, axis=0), DATA.cumsum(axis=0)),
    "expand_dims": (lambda a, i: xp.expand_dims(a, axis=0), DATA[None]),
    "eye": (lambda a, i: xp.eye(5, chunks=2) + 0, np.eye(5)),
    "flip": (lambda a, i: xp.flip(a, axis=0), DATA[::-1]),
    "floor_divide": (lambda a, i: i // 5, COUNTS // 5),
    "full": (lambda a, i: xp.full((3, 2), 4.0, chunks=2) * 1, np.full((3, 2), 4.0)),
    "hypot": (lambda a, i: xp.hypot(a, a), np.hypot(DATA, DATA)),
    "index": (lambda a, i: a[1:5, [2, 0]], DATA[1:5, [2, 0]]),
    "isin": (lambda a, i: xp.isin(i, xp.asarray([3, 5])), np.isin(COUNTS, [3, 5])),
    "linspace": (lambda a, i: xp.linspace(0, 1, 7, chunks=3), np.linspace(0, 1, 7)),
    "matmul": (lambda a, i: xp.matmul(a, a.T), DATA @ DATA.T),
    "max": (lambda a, i: xp.max(a), DATA.max()),
    "mean": (lambda a, i: xp.mean(a, axis=0), DATA.mean(axis=0)),
    "min": (lambda a, i: xp.min(a, axis=1), DATA.min(axis=1)),
    "permute_dims": (lambda a, i: xp.permute_dims(a, (1, 0)), DATA.T),
    "pow": (lambda a, i: a**2, DATA**2),
    "prod": (lambda a, i: xp.prod(a, axis=0), DATA.prod(axis=0)),
    "rechunk": (lambda a, i: a.rechunk((3, 2)), DATA),
    "repeat": (lambda a, i: xp.repeat(a, 2, axis=0), DATA.repeat(2, axis=0)),
    "reshape": (lambda a, i: xp.reshape(i.rechunk((3, 2)), (12,)), COUNTS.reshape(12)),
    "roll": (lambda a, i: xp.roll(a, 2, axis=0), np.roll(DATA, 2, axis=0)),
    "searchsorted": (
        lambda a, i: xp.searchsorted(xp.asarray([0.2, 0.6]), a[:, 0]),
        np.searchsorted([0.2, 0.6], DATA[:, 0]),
    ),
    "stack": (lambda a, i: xp.stack([a, a]), np.stack([DATA, DATA])),
    "sum": (lambda a, i: xp.sum(a, axis=1), DATA.sum(axis=1)),
    "sum of ints": (lambda a, i: xp.sum(i), COUNTS.sum()),
    "svd": (
        lambda a, i: xp.linalg.svdvals(a[:, :2].rechunk((2, 2))),
        np.linalg.svd(DATA[:, :2])[1],
    ),
    "take": (lambda a, i: xp.take(a, [3, 1], axis=1), DATA.take([3, 1], axis=1)),
    "tensordot": (
        lambda a, i: xp.tensordot(a, a, axes=((0,), (0,))),
        np.tensordot(DATA, DATA, axes=((0,), (0,))),
    ),
    "tril": (lambda a, i: xp.tril(a), np.tril(DATA)),
    "vecdot": (lambda a, i: xp.vecdot(a, a), (DATA * DATA).sum(axis=1)),
    "where": (
        lambda a, i: xp.where(a > 0.5, a, -a),
        np.where(DATA > 0.5, DATA, -DATA),
    ),
}
# By names that the standard lacks; `ndx.numpy` has them.
BEYOND = {
    "map_overlap": (
        lambda a, i: cubed.map_overlap(
            lambda x: x[2:, 1:-1] + x[:-2, 1:-1],
            a,
            dtype=a.dtype,
            depth=1,
            boundary=0,
            chunks=a.chunks,
            trim=False,
        ),
        np.pad(DATA, ((0, 1), (0, 0)))[1:] + np.pad(DATA, ((1, 0), (0, 0)))[:-1],
    ),
    "nanmean": (lambda a, i: cubed.nanmean(a, axis=0), DATA.mean(axis=0)),
    "nansum": (lambda a, i: cubed.nansum(a, axis=0), DATA.sum(axis=0)),
    "std": (lambda a, i: xp.std(a, axis=0), DATA.std(axis=0)),
    "var": (lambda a, i: xp.var(a), DATA.var()),
}
CALLS = STANDARD | (BEYOND if xp_name == "ndx.numpy" else {})


def check_is_ndarray(block):
    """Return a block; raise if it is no NDArray: it may be in another process."""
    if type(block) is not ndx.NDArray:
        raise TypeError(type(block))
    return block


def main(names):
    """Compare calls with NumPy's, all of them without names; print how many."""
    a = xp.asarray(ndx.asarray(DATA), chunks=(2, 3))
    i = cubed.from_array(ndx.asarray(COUNTS), chunks=(4, 1))
    checked = cubed.map_blocks(check_is_ndarray, a, dtype=a.dtype)
    calls = CALLS | {"map_blocks": (lambda a, i: checked, DATA)}
    for name in names or calls:
        call, expected = calls[name]
        found = call(a, i).compute()
        assert isinstance(found, ndx.NDArray), (name, type(found))
        assert found.dtype == np.asarray(expected).dtype, name
        np.testing.assert_allclose(
            np.asarray(found), expected, rtol=1e-12, err_msg=name
        )
    print(len(names or calls))


@contextlib.contextmanager
def executor_options(executor):
    """Yield the options of an executor: a cluster for that of dask."""
    if executor != "dask":
        yield {}
        return
    from cubed.runtime.executors import dask
    from distributed import LocalCluster

    # cubed 0.27 asks for the memory of the workers by a call that returns none of them
    # from distributed 2026 on, also for chunks of NumPy's.
    dask.check_runtime_memory = lambda spec, client: None
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as it:
        yield {"compute_kwargs": {"address": it.scheduler_address}}


if __name__ == "__main__":
    with (
        executor_options(sys.argv[1]) as options,
        cubed.config.set(
            {
                "spec.allowed_mem": "200MB",
                "spec.executor_name": sys.argv[1],
                "spec.executor_options": options,
            }
        ),
    ):
        main(sys.argv[2:])

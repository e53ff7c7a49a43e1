"""dask's arrays of NDArrays compute NDArrays, as those of NumPy's arrays do NumPy's."""

import pkgutil

import numpy as np
import pytest
from helpers.commands import run_python
from helpers.consumers import FEATURES
from helpers.project import PROJECT

import ndx
from ndx.testing import assert_allclose, assert_equal

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

CALLS = {
    "add": lambda d: d + d,
    "add a number": lambda d: 1 - d,
    "all": lambda d: (d > -1).all(axis=0),
    "argmax": lambda d: d.argmax(axis=0),
    "argmin of all": lambda d: d.argmin(),
    "argtopk": lambda d: d.argtopk(2, axis=0),
    "astype": lambda d: d.astype("f4"),
    "average": lambda d: da.average(d, axis=1, weights=d[0]),
    "bincount": lambda d: da.bincount((d[:, 0] > 1).astype(int)),
    "block": lambda d: da.block([[d, d], [d, d]]),
    "broadcast_to": lambda d: da.broadcast_to(d[0], (3, 4)),
    "clip": lambda d: da.clip(d, 0.1, 0.4),
    "concatenate": lambda d: da.concatenate([d, d]),
    "corrcoef": lambda d: da.corrcoef(d.T),
    "count_nonzero": lambda d: da.count_nonzero(d > 0.5, axis=0),
    "cov": lambda d: da.cov(d.T),
    "cumsum": lambda d: d.cumsum(axis=0),
    "diag": lambda d: da.diag(d[:4, 0]),
    "diff": lambda d: da.diff(d, axis=0),
    "digitize": lambda d: da.digitize(d, np.asarray([0.1, 0.5])),
    "einsum": lambda d: da.einsum("ij,kj->ik", d, d),
    "histogram": lambda d: da.histogram(d, bins=5, range=(0, 1))[0],
    "index by a list": lambda d: d[[3, 1, 20]],
    "index by a mask": lambda d: d[d > 0.5],
    "index by a mask of rows": lambda d: d[d[:, 0] > 0.5],
    "index by an array": lambda d: d[da.from_array(np.asarray([3, 1]), chunks=1)],
    "index by points": lambda d: d.vindex[[0, 1, 2], [1, 2, 3]],
    "index by slices": lambda d: d[::-2, 1:],
    "isin": lambda d: da.isin(d, [0.5, 1.0]),
    "map_blocks": lambda d: d.map_blocks(lambda block: block * 2),
    "map_overlap": lambda d: d.map_overlap(lambda b: np.cumsum(b, 0) - b, depth=1),
    "matmul": lambda d: d @ d.T,
    "max": lambda d: d.max(axis=1),
    "mean": lambda d: d.mean(axis=0, keepdims=True),
    "median": lambda d: da.median(d, axis=0),
    "moment": lambda d: d.moment(3, axis=0),
    "nanargmin": lambda d: da.nanargmin(d, axis=0),
    "nanmean": lambda d: da.nanmean(da.where(d > 0.1, d, np.nan), axis=0),
    "nansum": lambda d: da.nansum(d),
    "norm": lambda d: da.linalg.norm(d),
    "outer": lambda d: da.outer(d[0], d[1]),
    "pad": lambda d: da.pad(d, 1, mode="edge"),
    "percentile": lambda d: da.percentile(d[:, 0], [25, 50]),
    "prod": lambda d: d.prod(axis=0),
    "qr": lambda d: abs(da.linalg.qr(d.rechunk((15, 4)))[1]),
    "rechunk": lambda d: d.rechunk((7, 3)),
    "repeat": lambda d: da.repeat(d, 2, axis=0),
    "reshape": lambda d: d.reshape(5, 6, 4),
    "roll": lambda d: da.roll(d, 1, axis=0),
    "set items": lambda d: _with(d),
    "stack": lambda d: da.stack([d, d]),
    "std": lambda d: d.std(axis=0, ddof=1),
    "sum": lambda d: d.sum(),
    "svd": lambda d: da.linalg.svd(d.rechunk((15, 4)))[1],
    "take": lambda d: da.take(d, [2, 0], axis=1),
    "tensordot": lambda d: da.tensordot(d, d, axes=((0,), (0,))),
    "topk": lambda d: d.topk(2, axis=0),
    "transpose": lambda d: d.T,
    "tril": lambda d: da.tril(d),
    "ufunc": lambda d: np.arctan2(d, 2.0),
    "unique": lambda d: da.unique(da.round(d, 1)),
    "var": lambda d: d.var(),
    "where": lambda d: da.where(d > 0.5, d, 0.0),
}


def _with(d):
    d = d.copy()
    d[2:5] = 7.0
    d[d < 0.1] = 0.0
    return d


def check(found, expected, **tolerances):
    assert isinstance(found, ndx.NDArray)
    if np.asarray(expected).dtype.kind in "iub":
        assert_equal(found, expected)
    else:
        assert_allclose(found, expected, **tolerances)


@pytest.mark.parametrize("name", CALLS)
def test_computes_ndarrays(name):
    call = CALLS[name]
    expected = call(da.from_array(FEATURES, chunks=(10, 2)))
    found = call(da.from_array(ndx.asarray(FEATURES), chunks=(10, 2)))
    assert found.dtype == expected.dtype
    check(found.compute(scheduler="sync"), expected.compute(scheduler="sync"))


@pytest.mark.parametrize("name", ["map_blocks", "mean", "percentile", "qr", "sum"])
def test_the_kind_of_chunk_is_known_without_computing(name):
    found = CALLS[name](da.from_array(ndx.asarray(FEATURES), chunks=(10, 2)))
    assert isinstance(found._meta, ndx.NDArray)


@pytest.mark.threads
def test_threads_compute_in_ndx():
    x = ndx.ones((100, 100))
    d = (da.from_array(x, chunks=10) + 1).sum(axis=0)
    check(d.compute(scheduler="threads", num_workers=2), np.full(100, 200.0))


def test_processes_compute_in_ndx():
    d = da.from_array(ndx.asarray(FEATURES), chunks=(15, 4))
    found = (d + 1).compute(scheduler="processes", num_workers=1)
    check(found, FEATURES + 1)


@pytest.mark.parametrize("swapped", [False, True])
def test_mixes_with_ndarrays(swapped):
    x, y = ndx.asarray(FEATURES), da.from_array(FEATURES, chunks=10)
    x, y = (y, x) if swapped else (x, y)
    for found in (x + y, x * y, np.maximum(x, y), x <= y, np.concatenate([x, y])):
        assert isinstance(found, da.Array)
    check((x + y).compute(scheduler="sync"), FEATURES + FEATURES)


def test_names_of_equal_arrays_are_equal():
    x = ndx.asarray(FEATURES)
    tokens = {dask.base.tokenize(each) for each in (x, ndx.asarray(x, copy=True))}
    assert len(tokens) == 1
    assert dask.base.tokenize(x + 1) not in tokens
    assert dask.base.tokenize(x[::2]) == dask.base.tokenize(ndx.asarray(FEATURES[::2]))


def test_size_in_bytes_is_that_of_the_elements():
    x = ndx.zeros((10, 10))
    assert dask.sizeof.sizeof(x) == dask.sizeof.sizeof(x[:, :]) == 800


CREATED = {
    "arange": lambda: da.arange(7, chunks=3),
    "empty": lambda: da.empty((3, 4), chunks=2),
    "full": lambda: da.full((3, 4), 5.0, chunks=2),
    "ones": lambda: da.ones((3, 4), chunks=2),
    "ones of ints": lambda: da.ones((3, 4), dtype="i4", chunks=2),
    "zeros": lambda: da.zeros(3),
    "choice": lambda: da.random.default_rng(1).choice(9, size=4, chunks=2),
    "integers": lambda: da.random.default_rng(1).integers(9, size=4, chunks=2),
    "legacy": lambda: da.random.RandomState(1).normal(size=4, chunks=2),
    "normal": lambda: da.random.normal(size=4, chunks=2),
    "permutation": lambda: da.random.default_rng(1).permutation(da.arange(5)),
    "random": lambda: da.random.default_rng(1).random((3, 4), chunks=2),
}


@pytest.mark.parametrize("name", CREATED)
def test_creates_arrays_by_its_configuration(name):
    with dask.config.set({"array.backend": "ndx"}):
        d = CREATED[name]()
        expected = d.dtype
        found = d.compute(scheduler="sync")
    assert type(found) is type(d._meta) is ndx.NDArray
    assert found.shape == d.shape
    assert found.dtype == expected


def test_the_entry_point_names_the_backend():
    points = PROJECT["entry-points"]["dask.array.backends"]
    found = pkgutil.resolve_name(points["ndx"])
    assert type(da.backends.array_creation_dispatch.dispatch("ndx")) is found


def test_creates_nothing_of_ndx_by_default():
    assert type(da.ones(3).compute(scheduler="sync")) is np.ndarray


def test_created_arrays_outlive_the_workspace():
    with dask.config.set({"array.backend": "ndx"}):
        with ndx.workspace():
            d = da.ones(4, chunks=2)
        check((d + 1).compute(scheduler="sync"), np.full(4, 2.0))


def test_moves_arrays_to_ndx_and_back():
    d = da.from_array(FEATURES, chunks=10)
    moved = d.to_backend("ndx")
    check(moved.compute(scheduler="sync"), FEATURES)
    assert moved.to_backend("ndx") is moved
    back = moved.to_backend("numpy").compute(scheduler="sync")
    assert type(back) is np.ndarray


def test_generators_of_ndx_fill_ndarrays():
    rng = da.random.default_rng(ndx.random.default_rng(5))
    found = rng.normal(size=(4, 2), chunks=2)
    assert type(found.compute(scheduler="sync")) is type(found._meta) is ndx.NDArray


def test_numbers_are_those_of_numpy():
    found = da.random.default_rng(ndx.random.default_rng(5)).random(4, chunks=2)
    expected = da.random.default_rng(np.random.default_rng(5)).random(4, chunks=2)
    check(found.compute(scheduler="sync"), expected.compute(scheduler="sync"))


@pytest.mark.parametrize("first", ["ndx, dask.array", "dask.array, ndx"])
def test_the_order_of_imports_is_free(first):
    code = (
        f"import {first}; d = dask.array.from_array(ndx.arange(5.0), name='x');"
        "print(type(dask.array.percentile(d, [50]).compute()).__name__)"
    )
    assert run_python(code) == "NDArray\n"


def test_records_stay_with_numpy():
    x = ndx.ones(3)
    with pytest.raises(TypeError, match="an NDArray has no fields"):
        np.empty_like(x, dtype=[("a", float)])
    assert isinstance(np.empty_like(x, dtype=np.float32, shape=2), ndx.NDArray)

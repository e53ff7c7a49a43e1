"""A DataArray over an NDArray computes in ndx, and what it holds stays an NDArray."""

import numpy as np
import pytest
import xarray as xr
from helpers.commands import run_python
from helpers.consumers import FEATURES, check

import ndx

WEIGHTS = FEATURES[:, 0]
HOLES = np.where(FEATURES > 1, np.nan, FEATURES)
CALLS = {
    "abs": lambda a: abs(-a),
    "add": lambda a: a + 1,
    "add arrays": lambda a: a + a,
    "add aligned": lambda a: a.isel(time=slice(5)) + a.isel(time=slice(2, 9)),
    "all": lambda a: (a > 0.1).all("time"),
    "any": lambda a: (a > 0.9).any("time"),
    "apply_ufunc": lambda a: xr.apply_ufunc(lambda x: x * 2, a),
    "argmax": lambda a: a.argmax("time", skipna=False),
    "astype": lambda a: a.astype("float32"),
    "broadcast": lambda a: a * a[0],
    "clip": lambda a: a.clip(0.1, 0.2),
    "comparison": lambda a: a > 0.5,
    "concat": lambda a: xr.concat([a, a], "time"),
    "copy": lambda a: a.copy(deep=True),
    "count": lambda a: a.count("time"),
    "dataset": lambda a: xr.Dataset({"a": a}).mean(skipna=False)["a"],
    "diff": lambda a: a.diff("time"),
    "expand_dims": lambda a: a.expand_dims("new"),
    "fillna": lambda a: a.fillna(0.0),
    "full_like": lambda a: xr.full_like(a, 3.0),
    "groupby": lambda a: a.groupby(a.time % 3).max(skipna=False),
    "index by a list": lambda a: a[:, [0, 2]],
    "index by a mask": lambda a: a[np.arange(30) % 3 == 0],
    "index by an int": lambda a: a[3],
    "index by lists": lambda a: a.isel(time=[1, 3], space=[0, 2]),
    "index by slices": lambda a: a[::-2, 1:],
    "isel": lambda a: a.isel(time=slice(0, 3), space=-1),
    "isnull": lambda a: a.isnull(),
    "max": lambda a: a.max(skipna=False),
    "max of axis": lambda a: a.max("space", skipna=False),
    "mean": lambda a: a.mean("time", skipna=False),
    "min": lambda a: a.min("time", skipna=False),
    "NumPy's functions": lambda a: np.sin(a),
    "negative": lambda a: -a,
    "notnull": lambda a: a.notnull(),
    "ones_like": lambda a: xr.ones_like(a),
    "power": lambda a: 2**a**2,
    "prod": lambda a: a.prod("time", skipna=False),
    "roll": lambda a: a.roll(time=1),
    "round": lambda a: a.round(),
    "sel": lambda a: a.sel(time=[3, 4]),
    "stack": lambda a: a.stack(both=("time", "space")),
    "sum": lambda a: a.sum("time"),
    "sum of holes": lambda a: a.where(a > 0.5).sum("space"),
    "transpose": lambda a: a.T,
    "where": lambda a: a.where(a > 0.5),
    "where else": lambda a: a.where(a > 0.5, 0.0),
    "zeros_like": lambda a: xr.zeros_like(a),
}
# Over values some of which are NaN.
SKIP_NAN = {
    "argmax": lambda a: a.argmax("time"),
    "count": lambda a: a.count("time"),
    "cumprod": lambda a: a.cumprod("time"),
    "cumsum": lambda a: a.cumsum("time"),
    "max": lambda a: a.max("time"),
    "mean": lambda a: a.mean("time"),
    "median": lambda a: a.median("time"),
    "min": lambda a: a.min("space"),
    "quantile": lambda a: a.quantile([0.2, 0.5], "time"),
    "std": lambda a: a.std("time", ddof=1),
    "var": lambda a: a.var("time"),
}
# What xarray takes from NumPy's names in the namespace, or from SciPy.
BEYOND = {
    "coarsen": lambda a: a.coarsen(time=3).mean(),
    "coarsen to windows": lambda a: a.coarsen(time=3).construct(time=("a", "b")),
    "corr": lambda a: xr.corr(a, a**2, "time"),
    "cov": lambda a: xr.cov(a, a**2, "time"),
    "cross": lambda a: xr.cross(a[:, :3], a[:, 1:], dim="space"),
    "cumulative": lambda a: a.cumulative("time").sum(),
    "differentiate": lambda a: a.differentiate("time"),
    "dot": lambda a: a.dot(a, "time"),
    "einsum of three": lambda a: xr.dot(a, a, a[0], dim="time"),
    "groupby": lambda a: a.groupby(a.time % 3).mean(),
    "groupby_bins": lambda a: a.groupby_bins("time", [0, 9, 20, 30]).sum(),
    "integrate": lambda a: a.integrate("time"),
    "interp": lambda a: a.interp(time=[0.5, 7.25]),
    "interp to the nearest": lambda a: a.interp(time=[0.4, 7.3], method="nearest"),
    "pad": lambda a: a.pad(time=2, mode="reflect"),
    "quantile": lambda a: a.quantile(0.5, "time"),
    "rolling mean": lambda a: a.rolling(time=3).mean(),
    "rolling windows": lambda a: a.rolling(time=3).construct("window"),
    "searchsorted": lambda a: a[:, 0].cumsum().searchsorted([0.5, 2.0]),
    "select points": lambda a: a.isel(time=POINTS, space=POINTS),
    "shift": lambda a: a.shift(time=1),
    "std": lambda a: a.std("time", skipna=False),
    "ufuncs": lambda a: xr.ufuncs.arctan2(a, a + 1),
    "var": lambda a: a.var("time", skipna=False, ddof=1),
    "weighted": lambda a: a.weighted(a[:, 0] * 0 + 1).mean("time"),
}
POINTS = xr.DataArray([0, 2, 1], dims="points")
# xarray wants one chunk for the one, and one-dimensional arrays for the other.
NO_DASK = {"cross", "searchsorted"}


def data_array(x):
    return xr.DataArray(x, dims=("time", "space"), coords={"time": range(len(x))})


@pytest.fixture(scope="module", autouse=True)
def _looked_for_libraries():
    """Let xarray look for others once: it keeps errors, and so its callers' frames."""
    for call in CALLS.values():
        call(data_array(FEATURES))


@pytest.mark.parametrize("name", CALLS)
def test_computes_in_ndx(name):
    check(lambda xp, x: CALLS[name](data_array(x)).data, FEATURES)


@pytest.mark.parametrize("name", SKIP_NAN)
def test_computes_in_ndx_without_nan(name):
    check(lambda xp, x: SKIP_NAN[name](data_array(x)).data, HOLES)


@pytest.mark.parametrize("name", BEYOND)
def test_computes_in_the_namespace_of_numpy(name):
    check(lambda xp, x: BEYOND[name](data_array(x)).data, FEATURES)


OVER_DASK = {**SKIP_NAN, **BEYOND}


@pytest.mark.parametrize(
    "name", sorted(OVER_DASK.keys() - {"cumprod", "median", *NO_DASK})
)
def test_computes_in_ndx_over_dask(name):
    pytest.importorskip("dask.array")

    def call(xp, x):
        result = OVER_DASK[name](data_array(x).chunk(space=2))
        return result.compute(scheduler="sync").data

    check(call, FEATURES)


def test_points_can_be_written():
    x = ndx.asarray(FEATURES, copy=True)
    expected = FEATURES.copy()
    data_array(x)[{"time": POINTS, "space": POINTS}] = 5.0
    expected[[0, 2, 1], [0, 2, 1]] = 5.0
    assert np.array_equal(x, expected)


def test_other_arrays_are_computed_as_before():
    a = data_array(FEATURES)
    assert type(a.pad(time=1).data) is np.ndarray
    assert type(a.interp(time=[0.5]).data) is np.ndarray
    assert type(a.isel(time=POINTS, space=POINTS).data) is np.ndarray


@pytest.mark.parametrize("first", ["ndx, xarray, xarray.ufuncs", "xarray.ufuncs, ndx"])
def test_the_order_of_imports_is_free(first):
    code = (
        f"import {first}; x = xarray.DataArray(ndx.ones(3), dims='a');"
        "p = xarray.DataArray([0, 1], dims='p');"
        "found = x.pad(a=1), xarray.ufuncs.arccos(x), x.isel(a=p),"
        "x.assign_coords(a=[0, 1, 2]).interp(a=[0.5]);"
        "print(*{type(each.data).__name__ for each in found})"
    )
    assert run_python(code) == "NDArray\n"


def test_holds_the_array_itself():
    x = ndx.asarray(FEATURES)
    assert data_array(x).data is x
    assert "NDArray" in repr(data_array(x)[:2])


def test_writes_into_the_array():
    x = ndx.asarray(FEATURES, copy=True)
    a = data_array(x)
    a[0] = 5.0
    a.loc[{"time": 3}] = 6.0
    assert a.data is x
    assert float(ndx.sum(x[0] + x[3])) == 44.0


def test_values_are_numpy_and_equal():
    a = data_array(ndx.asarray(FEATURES))
    assert type(a.values) is np.ndarray
    assert a.equals(a.copy())
    xr.testing.assert_allclose(a.as_numpy(), data_array(FEATURES))


def test_arrays_of_a_scope_that_has_ended_say_so():
    with ndx.workspace():
        a = data_array(ndx.ones((3, 2))) + 1
        kept = a.copy(data=a.data.detach())
    with pytest.raises(ndx.StaleArrayError):
        a + 1
    assert float(kept.sum()) == 12.0

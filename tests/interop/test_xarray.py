"""A DataArray over an NDArray computes in ndx, and what it holds stays an NDArray."""

import numpy as np
import pytest
import xarray as xr
from helpers.consumers import FEATURES, check, limitation

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
# Why xarray leaves the namespace for these, and returns NumPy's arrays.
SKIPS_NAN = "skips NaN by np.nan..., not by the namespace; skipna=False keeps the type"
IN_NUMPY = {
    "mean": (lambda a: a.mean("time"), SKIPS_NAN),
    "std": (lambda a: a.std("time"), SKIPS_NAN),
    "max": (lambda a: a.max("time"), SKIPS_NAN),
    "argmax": (lambda a: a.argmax("time"), SKIPS_NAN),
    "median": (lambda a: a.median("time"), "calls np.median"),
}
# What it asks of a namespace beyond the standard.
CANNOT = {
    "dot": (lambda a: a.dot(a, "time"), "calls transpose"),
    "pad": (lambda a: a.pad(time=1), "calls pad"),
    "quantile": (lambda a: a.quantile(0.5, "time"), "calls transpose"),
    "shift": (lambda a: a.shift(time=1), "calls pad"),
    "std": (lambda a: a.std("time", skipna=False), "calls std(ddof=...)"),
    "var": (lambda a: a.var("time", skipna=False), "calls var(ddof=...)"),
}


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


@pytest.mark.parametrize("name", IN_NUMPY)
def test_computes_in_numpy(name):
    call, reason = IN_NUMPY[name]
    check(lambda xp, x: call(data_array(x)).data, HOLES, returns=None)
    if not isinstance(call(data_array(ndx.asarray(HOLES))).data, ndx.NDArray):
        pytest.skip(f"xarray's {name} {reason}")


@pytest.mark.parametrize("name", CANNOT)
def test_can_not(name):
    call, reason = CANNOT[name]
    reason = f"xarray's {name} {reason}, which the standard has not"
    match = "module 'ndx' has no attribute|unexpected keyword argument 'ddof'"
    with limitation((AttributeError, TypeError), match, reason):
        call(data_array(ndx.asarray(FEATURES)))


def test_can_not_index_by_several_arrays_pointwise():
    a = data_array(ndx.asarray(FEATURES))
    points = xr.DataArray([0, 1], dims="points")
    reason = "xarray refuses vectorized indexing of all arrays of the standard"
    with limitation(TypeError, "Vectorized indexing is not supported", reason):
        a.isel(time=points, space=points)


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

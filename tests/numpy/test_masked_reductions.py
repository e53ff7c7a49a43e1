"""Reductions with `where=` and `initial=`: NumPy's results, to the last bit."""

import warnings

import numpy as np
import pytest
from helpers.arrays import in_some_layout, pairs
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy

NAMES = ["sum", "prod", "max", "min", "any", "all", "mean"]
LONG = [(40_000,), (200_000,), (300, 150), (7, 40, 160)]


def reduce(np, x, name, options):
    """Return a reduction, or the class of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(np, name)(x, **options)
    except (OverflowError, TypeError, ValueError) as error:
        return type(error)


def check(a, x, name, options, mask):
    """Compare a reduction of an array with that of NumPy's, of the same layout."""
    assert_same(x, a)
    if mask is not None:
        options = {**options, "where": np.asarray(mask)}
    wanted = reduce(np, np.asarray(x), name, options)
    if mask is not None:
        options = {**options, "where": mask}
    found = reduce(ndx.numpy, x, name, options)
    if isinstance(wanted, type):
        assert found is wanted
    else:
        assert_same(found, wanted)


@examples(60, each=2)
@given(
    pair=pairs(max_dims=3),
    name=st.sampled_from(NAMES),
    initial=st.sampled_from([None, 0, 1, -3, 2.5, True, 300, float("nan")]),
    keepdims=st.booleans(),
    data=st.data(),
)
def test_few_elements(pair, name, initial, keepdims, data):
    a, x = pair
    options = {"keepdims": keepdims}
    options["axis"] = data.draw(st.sampled_from([None, *range(a.ndim)]))
    if initial is not None and name not in ("any", "all", "mean"):
        options["initial"] = initial
    mask = None
    if data.draw(st.booleans()):
        kept = data.draw(st.lists(st.booleans(), min_size=a.ndim, max_size=a.ndim))
        shape = [n if k else 1 for n, k in zip(a.shape, kept, strict=True)]
        shape = shape[data.draw(st.integers(0, a.ndim)) :]
        bits = data.draw(st.integers(0, 2**64 - 1))
        options["where"] = np.array(
            [bits >> i % 64 & 1 for i in range(int(np.prod(shape)))], dtype=bool
        ).reshape(shape)
        mask = data.draw(in_some_layout(options["where"]))
    check(a, x, name, options, mask)


@pytest.mark.parametrize("shape", LONG)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32"])
@pytest.mark.parametrize("name", ["sum", "max", "any", "prod"])
def test_many_elements(shape, dtype, name):
    rng = np.random.default_rng(3)
    a = np.abs(rng.normal(size=shape) * 20).astype(dtype)
    a = np.minimum(a, 1) if name == "prod" else a
    mask = rng.random(shape) < 0.7
    x, y = ndx.asarray(a), ndx.asarray(mask)
    for axis in [None, *range(a.ndim)]:
        options = {"axis": axis, "where": mask}
        if name != "any":
            options["initial"] = 1
        check(a, x, name, options, y)


@pytest.mark.parametrize("name", ["sum", "max", "any"])
def test_a_mask_that_is_not_bool_or_too_large_is_refused_as_by_numpy(name):
    a = np.arange(6.0).reshape(2, 3)
    for mask in (np.ones((2, 2), dtype=bool), np.ones(3, dtype="int64")):
        options = {"where": mask}
        if name == "max":
            options["initial"] = 0
        check(a, ndx.asarray(a), name, options, ndx.asarray(mask))


def test_a_stale_mask_is_refused():
    x = ndx.ones(3)
    with ndx.workspace("step"):
        mask = ndx.ones(3, dtype="bool")
    with pytest.raises(ndx.StaleArrayError):
        ndx.numpy.sum(x, where=mask)


def test_no_more_than_the_result_is_allocated():
    x = ndx.ones((100, 1000), dtype="int8")
    mask = x > 0
    with ndx.workspace("step", size="4KiB", spill="fail"):
        assert int(x.sum(where=mask, initial=5)) == 100_005

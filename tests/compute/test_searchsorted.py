"""searchsorted: NumPy's places, for any values, layouts and numbers of threads."""

import numpy as np
import pytest
from helpers import dtypes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx

SIDES = ["left", "right"]


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


@given(st.data(), st.sampled_from(dtypes.ALL), st.sampled_from(SIDES))
def test_places_are_those_of_numpy(data, name, side):
    few = data.draw(st.booleans())
    most = 1 if name == "bool" else 3
    elements = st.integers(0, most).map(np.dtype(name).type) if few else None
    x = np.sort(data.draw(hnp.arrays(name, st.integers(0, 70), elements=elements)))
    values = data.draw(
        hnp.arrays(name, hnp.array_shapes(min_dims=0, min_side=0), elements=elements)
    )
    if data.draw(st.booleans()):
        values = np.concatenate([values.ravel(), x, x])
    if data.draw(st.booleans()):
        values = np.sort(values, axis=None)
    expected = np.searchsorted(x, values, side)
    step = data.draw(st.sampled_from([1, 2, -1]))
    a = ndx.asarray(np.repeat(x, abs(step))[:: abs(step)], copy=None)
    if step < 0:
        a = ndx.asarray(x[::-1].copy())[::-1]
    for given_values in (values, values.T):
        found = ndx.searchsorted(a, ndx.asarray(given_values, copy=None), side=side)
        assert found.dtype == np.int64
        np.testing.assert_array_equal(
            found, expected if given_values is values else expected.T
        )


@pytest.mark.threads
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "int16"])
@pytest.mark.parametrize("side", SIDES)
def test_places_of_many_values_are_equal_for_any_number_of_threads(dtype, side):
    rng = np.random.default_rng(0)
    x = dtypes.cast(rng.standard_normal(50_001) * 1000, dtype)
    values = dtypes.cast(rng.standard_normal(100_003) * 1000, dtype)
    if x.dtype.kind == "f":
        for special in (np.nan, np.inf, -np.inf, -0.0, 0.0):
            x[rng.integers(0, x.size, 50)] = special
            values[rng.integers(0, values.size, 50)] = special
    x.sort()
    for keys in (values, np.sort(values), np.sort(values)[::-1]):
        expected = np.searchsorted(x, keys, side)
        for threads in (1, 2, 3, 5):
            ndx.set_num_threads(threads)
            found = ndx.searchsorted(
                ndx.asarray(x), ndx.asarray(keys, copy=None), side=side
            )
            np.testing.assert_array_equal(found, expected)


def test_operands_that_are_stale_or_of_two_dtypes():
    with ndx.workspace("places"):
        x = ndx.arange(3.0)
    with pytest.raises(ndx.StaleArrayError):
        ndx.searchsorted(x, ndx.ones(3))
    with pytest.raises(ndx.StaleArrayError):
        ndx.searchsorted(ndx.ones(3), x)
    found = ndx.searchsorted(ndx.asarray([1, 2, 3]), ndx.asarray([1.5, np.nan]))
    assert found.tolist() == [1, 3]

"""Functions in which integer types meet, against Python's ints and fractions."""

import bisect
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy as face

BORDERS = [0, 2**7, 2**8, 2**15, 2**16, 2**31, 2**32, 2**53, 2**62, 2**63, 2**64]
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
NARROW = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]


def numbers_of(dtype):
    """Return a strategy for integers of a dtype, most of them near a border."""
    info = np.iinfo(dtype)
    near = st.builds(
        lambda border, sign, more: sign * border + more,
        st.sampled_from(BORDERS),
        st.sampled_from([-1, 1]),
        st.integers(-3, 3),
    )
    return near.filter(lambda n: info.min <= n <= info.max) | st.integers(
        int(info.min), int(info.max)
    )


@st.composite
def arrays(draw, dtypes=INTEGERS, least=0):
    """Draw an NDArray of integers, and its elements as Python's ints."""
    dtype = draw(st.sampled_from(dtypes))
    items = draw(st.lists(numbers_of(dtype), min_size=least, max_size=6))
    return ndx.asarray(items, dtype=dtype), items


@st.composite
def sorted_arrays(draw):
    x, items = draw(arrays(least=1))
    return ndx.sort(x), sorted(items)


SIDES = {"left": bisect.bisect_left, "right": bisect.bisect_right}


@given(sorted_arrays(), arrays(), st.sampled_from(["left", "right"]))
def test_searchsorted(first, second, side):
    (x, items), (keys, numbers) = first, second
    expected = [SIDES[side](items, number) for number in numbers]
    backwards = ndx.flip(x)
    sorter = ndx.flip(ndx.arange(x.size))
    for found in (
        ndx.searchsorted(x, keys, side=side),
        ndx.searchsorted(backwards, keys, side=side, sorter=sorter),
        face.searchsorted(x, keys, side=side),
        face.searchsorted(x, v=keys, side=side),
        np.searchsorted(x, keys, side),
        np.searchsorted(np.asarray(x), keys, side),
        x.searchsorted(keys, side),
        face.digitize(keys, x, right=side == "left"),
    ):
        assert isinstance(found, ndx.NDArray)
        assert found.dtype == "int64"
        assert found.tolist() == expected
    for key, place in zip(keys, expected, strict=True):
        assert int(ndx.searchsorted(x, key, side=side)) == place
        assert int(face.searchsorted(x, key, side)) == place


@given(sorted_arrays(), arrays(), st.booleans())
def test_histogram(first, second, weighted):
    bins, (x, numbers) = ndx.unique_values(first[0]), second
    edges = bins.tolist()
    if len(edges) < 2:
        return
    weights = ndx.arange(x.size) if weighted else None
    counts = [0] * (len(edges) - 1)
    for place, number in enumerate(numbers):
        if edges[0] <= number <= edges[-1]:
            bin_ = min(bisect.bisect_right(edges, number), len(edges) - 1) - 1
            counts[bin_] += place if weighted else 1
    found, limits = face.histogram(x, bins, weights=weights)
    assert found.tolist() == counts
    assert limits.tolist() == edges


@given(arrays(), arrays())
def test_comparisons_and_membership(first, second):
    (x, items), (y, others) = first, second
    for xp in (ndx, face):
        assert xp.isin(x, y).tolist() == [n in others for n in items]
    least = min(len(items), len(others))
    pairs = list(zip(items, others, strict=False))
    a, b = x[:least], y[:least]
    for xp in (ndx, face):
        assert xp.equal(a, b).tolist() == [m == n for m, n in pairs]
        assert xp.less(a, b).tolist() == [m < n for m, n in pairs]
        assert xp.greater_equal(a, b).tolist() == [m >= n for m, n in pairs]


@given(arrays(), arrays())
def test_sets(first, second):
    (x, items), (y, others) = first, second
    assert ndx.unique_values(x).tolist() == sorted(set(items))
    assert face.setdiff1d(x, y).tolist() == sorted(set(items) - set(others))
    common, places, other_places = face.intersect1d(x, y, return_indices=True)
    assert common.tolist() == sorted(set(items) & set(others))
    assert face.intersect1d(x, y).tolist() == common.tolist()
    assert x[places].tolist() == y[other_places].tolist() == common.tolist()
    every = {*items, *others}
    if not every or min(every) >= 0 or max(every) < 2**63:
        assert face.union1d(x, y).tolist() == sorted(every)
        assert face.setxor1d(x, y).tolist() == sorted(set(items) ^ set(others))


@given(arrays(), arrays())
def test_promoted_values_are_the_nearest(first, second):
    """Uint64 and signed integers promote to float64, as in NumPy."""
    (x, items), (y, others) = first, second
    for xp in (ndx, face):
        found = xp.concat([x, y])
        kind = float if found.dtype.kind == "f" else int
        assert found.tolist() == [kind(n) for n in (*items, *others)]
    least = min(len(items), len(others))
    pairs = list(zip(items, others, strict=False))
    for xp in (ndx, face):
        found = xp.maximum(x[:least], y[:least])
        kind = float if found.dtype.kind == "f" else int
        assert found.tolist() == [kind(max(pair)) for pair in pairs]
        found = xp.where(ndx.ones(least, dtype=bool), x[:least], y[:least])
        assert found.tolist() == [kind(m) for m, _ in pairs]


@given(arrays(least=1), st.data())
def test_clip(first, data):
    x, items = first
    low, high = sorted(data.draw(st.tuples(*[numbers_of(x.dtype)] * 2)))
    expected = [min(max(n, low), high) for n in items]
    for xp in (ndx, face):
        assert xp.clip(x, low, high).tolist() == expected
        bounds = ndx.asarray([low, high], dtype=x.dtype)
        assert xp.clip(x, bounds[0], bounds[1]).tolist() == expected


@st.composite
def ranges(draw):
    dtype = draw(st.sampled_from(INTEGERS))
    return dtype, draw(numbers_of(dtype)), draw(numbers_of(dtype))


@given(ranges(), st.integers(0, 12), st.booleans())
def test_linspace(ends, num, endpoint):
    dtype, start, stop = ends
    parts = max(num - endpoint, 1)
    expected = [
        math.floor(start + i * Fraction(stop - start, parts)) for i in range(num)
    ]
    for xp in (ndx, face):
        found = xp.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)
        assert isinstance(found, ndx.NDArray)
        assert found.dtype == dtype
        assert found.tolist() == expected


@given(ranges(), st.integers(1, 12))
def test_arange(ends, count):
    dtype, start, stop = ends
    step = (stop - start) // count or 1
    for xp in (ndx, face):
        found = xp.arange(start, stop, step, dtype=dtype)
        assert found.tolist() == list(range(start, stop, step))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_ranges_beyond_a_dtype_are_refused(dtype):
    last = int(np.iinfo(dtype).max)
    for xp in (ndx, face):
        assert xp.arange(last - 1, last + 1, dtype=dtype).tolist() == [last - 1, last]
        with pytest.raises(OverflowError, match="does not fit"):
            xp.arange(last - 1, last + 2, dtype=dtype)
        with pytest.raises(OverflowError, match="does not fit"):
            xp.linspace(0, last + 1, 3, dtype=dtype)
        with pytest.raises(OverflowError, match="does not fit"):
            xp.linspace(int(np.iinfo(dtype).min) - 1, 0, 3, dtype=dtype)


def test_default_ranges_beyond_int64_are_refused():
    with pytest.raises(OverflowError, match="does not fit int64"):
        ndx.arange(2**63, 2**63 + 2)


def test_elements_are_ends_of_ranges():
    first, last = face.asarray([2**62, 2**62 + 3])
    assert face.linspace(first, last, 4, dtype=int).tolist() == [
        2**62 + i for i in range(4)
    ]
    found, step = face.linspace(0, 10, 6, dtype=int, retstep=True)
    assert found.tolist() == [0, 2, 4, 6, 8, 10]
    assert step == 2


def quantile_of(items, q):
    """Return the linear quantile as a fraction."""
    items = sorted(items)
    place = Fraction(q) * (len(items) - 1)
    below = math.floor(place)
    above = min(below + 1, len(items) - 1)
    return items[below] + (place - below) * (items[above] - items[below])


@given(arrays(least=1), st.sampled_from([0, 0.125, 0.25, 0.5, 0.75, 1]))
def test_quantiles(first, q):
    x, items = first
    exact = float(quantile_of(items, q))
    size = max(map(abs, items))
    for found in (
        face.quantile(x, q),
        face.percentile(x, 100 * q),
        face.nanquantile(x, q),
        face.nanpercentile(x, 100 * q),
        np.quantile(x, q),
        *([face.median(x), face.nanmedian(x)] if q == 0.5 else []),
    ):
        assert abs(float(found) - exact) <= size * 2**-51
    numpys = np.quantile(np.asarray(items, dtype=object), q, method="lower")
    assert int(face.quantile(x, q, method="lower")) == numpys


@given(arrays(NARROW, least=2), st.booleans())
def test_trapezoid(first, spaced):
    y, items = first
    x = ndx.asarray(items, dtype=y.dtype) if spaced else None
    places = items if spaced else range(len(items))
    exact = sum(
        Fraction((places[i + 1] - places[i]) * (items[i] + items[i + 1]), 2)
        for i in range(len(items) - 1)
    )
    assert math.isclose(face.trapezoid(y, x), exact, rel_tol=1e-12, abs_tol=2**40)
    if not spaced:
        assert float(face.trapezoid(y)) == float(exact)


def test_interp_of_large_integers():
    start = 1_700_000_000_000_000_000
    xp = face.asarray([start, start + 4, start + 8])
    x = face.arange(start - 1, start + 10)
    found = face.interp(x, xp, [0.0, 1.0, 3.0])
    expected = [0, 0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3]
    assert found.tolist() == expected
    assert face.interp(x.astype("uint64"), xp, [0.0, 1.0, 3.0]).tolist() == expected
    assert face.interp(x, xp, [0.0, 1.0, 3.0], left=-1)[0] == -1


def test_subclasses_compute_themselves():
    x = np.ma.array([1, 2, 100], mask=[0, 0, 1], dtype="int8")
    assert face.average(x) == 1.5
    assert face.trapezoid(x) == np.trapezoid(x)


FEW_DIGITS = {
    "nansum": lambda x, **how: face.nansum(x, **how) / x.shape[0],
    "nanmean": face.nanmean,
    "average": face.average,
    "weighted": lambda x, axis: face.average(
        x, axis, weights=face.ones(x.shape[0], dtype="float32")
    ),
    "nanstd": lambda x, **how: face.nanstd(x, **how) + 0.1,
    "nanvar": lambda x, **how: face.nanvar(x, **how) + 0.1,
}


@pytest.mark.parametrize("name", FEW_DIGITS)
def test_sums_of_many_rows_keep_their_digits(name):
    x = ndx.full((2**20, 2), 0.1, dtype="float32")
    found = FEW_DIGITS[name](x, axis=0)
    assert found.dtype == "float32"
    assert np.abs(np.asarray(found) - 0.1).max() < 1e-7


def test_averages_return_the_sum_of_weights():
    x = face.ones((2000, 2), dtype="float32")
    found, total = face.average(x, axis=0, returned=True)
    assert found.tolist() == [1, 1]
    assert total.tolist() == [2000, 2000]
    found, total = face.average(x, weights=x, returned=True)
    assert found == 1
    assert total == 4000


def test_searchsorted_of_lists():
    a = face.array([2**62, 2**62 + 25], "uint64")
    for keys in ([2**62 + 25], (2**62 + 25, 2**62 + 1)):
        assert face.searchsorted(a, keys).tolist() == [1] * len(keys)
        assert a.searchsorted(keys).tolist() == [1] * len(keys)
        assert np.searchsorted(a, keys).tolist() == [1] * len(keys)

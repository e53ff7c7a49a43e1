"""Writes to views whose elements share memory: NumPy's results, on any threads."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import ndx
import ndx.numpy as nn

pytestmark = pytest.mark.threads

# Shape, strides in elements, elements of the base. The last ones are for threads.
LAYOUTS = {
    "rows": ((8, 10), (0, 1), 10),
    "columns": ((10, 8), (1, 0), 10),
    "windows": ((8, 3), (1, 1), 10),
    "windows back": ((8, 3), (-1, -1), 10),
    "wide windows": ((3, 5), (3, 1), 11),
    "one": ((7,), (0,), 1),
    "many rows": ((16, 100_000), (0, 1), 100_000),
    "many windows": ((100_000, 3), (1, 1), 100_002),
}


@pytest.fixture(params=[1, 4])
def threads(request):
    before = ndx.get_num_threads()
    ndx.set_num_threads(request.param)
    yield request.param
    ndx.set_num_threads(before)


@pytest.fixture(params=LAYOUTS)
def layout(request):
    return LAYOUTS[request.param]


def views(layout, dtype=np.float64):
    """Return NumPy's base and view, and the base and view of ndx."""
    shape, strides, size = layout
    bases = np.arange(size).astype(dtype), np.arange(size).astype(dtype)
    found = []
    for base in bases:
        start = base[-1:] if strides[0] < 0 else base
        steps = [step * base.itemsize for step in strides]
        found.append(as_strided(start, shape, steps))
    return bases[0], found[0], bases[1], ndx.asarray(found[1])


def set_reversed(v, m):
    v[...] = m.flip(v, axis=0)


def set_masked(v, m):
    v[m.asarray(np.asarray(v) % 2 == 0)] = -1


CHANGES = {
    "add": lambda v, m: v.__iadd__(1),
    "multiply": lambda v, m: v.__imul__(v),
    "add a row": lambda v, m: v.__iadd__(m.ones(v.shape[-1:])),
    "add an integer": lambda v, m: v.__iadd__(m.ones(v.shape, dtype=np.int32)),
    "out": lambda v, m: m.add(v, v, out=v),
    "negative": lambda v, m: m.negative(v, out=v),
    "clip": lambda v, m: m.clip(v, 2, 5, out=v),
    "reversed": set_reversed,
    "a column": lambda v, m: v.__setitem__(..., v[:, :1] if v.ndim > 1 else v),
    "itself": lambda v, m: v.__setitem__(..., v),
    "fill": lambda v, m: v.__setitem__(..., 3),
    "mask": set_masked,
    "indices": lambda v, m: v.__setitem__(m.asarray([0, 0]), 7),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes(change, layout, threads):
    for dtype in (np.float64, np.float32):
        a, v, b, w = views(layout, dtype)
        CHANGES[change](v, np)
        CHANGES[change](w, ndx)
        np.testing.assert_array_equal(b, a)


def test_windows(threads):
    x = nn.arange(10.0)
    w = nn.lib.stride_tricks.sliding_window_view(x, 3, writeable=True)
    w += 1
    assert x.tolist() == list(range(1, 11))
    np.add(w, 1, out=w)
    assert x.tolist() == list(range(2, 12))


def test_the_last_value_is_kept(threads):
    shape = (16, 40_000)
    values = np.arange(16 * 40_000.0).reshape(shape)
    for source in (values, values.astype(np.int64)):
        base = np.zeros(40_000)
        w = ndx.asarray(as_strided(base, shape, (0, 8)))
        w[...] = ndx.asarray(source)
        np.testing.assert_array_equal(base, source[-1])
        ndx.add(ndx.asarray(values), 1, out=w)
        np.testing.assert_array_equal(base, values[-1] + 1)
    mask = values % 3 == 0
    base = np.zeros(40_000)
    w = ndx.asarray(as_strided(base, shape, (0, 8)))
    w[ndx.asarray(mask)] = ndx.asarray(values[mask])
    expected = np.zeros(40_000)
    as_strided(expected, shape, (0, 8))[mask] = values[mask]
    np.testing.assert_array_equal(base, expected)


def test_sorting(threads):
    values = np.random.default_rng(0).normal(size=40_000)
    for dtype in (np.float64, np.int32):
        base = (values * 1000).astype(dtype)
        expected = np.sort(base)
        w = ndx.asarray(as_strided(base, (8, 40_000), (0, base.itemsize)))
        w.sort(axis=1)
        np.testing.assert_array_equal(base, expected)


SMALL_MATRICES = [
    name
    for name, (shape, *_) in LAYOUTS.items()
    if len(shape) == 2 and max(shape) < 100
]


@pytest.mark.parametrize("name", SMALL_MATRICES)
def test_products(name, threads):
    a, v, b, w = views(LAYOUTS[name])
    left = np.arange(v.shape[0] ** 2.0).reshape(v.shape[0], -1)
    np.matmul(left, v.copy(), out=v)
    nn.matmul(nn.asarray(left), w, out=w)
    np.testing.assert_array_equal(b, a)


def test_fused(threads):
    @ndx.fuse
    def add(x, y):
        x += y
        x *= 2

    for _ in range(3):
        base = np.arange(40_002.0)
        expected = 2 * (base + 1)
        w = ndx.asarray(as_strided(base, (40_000, 3), (8, 8)))
        add(w, ndx.ones(3))
        np.testing.assert_array_equal(base, expected)


def test_files(tmp_path, threads):
    ndx.save(tmp_path / "x.npy", ndx.arange(40_002.0))
    x = ndx.open(tmp_path / "x.npy", mode="r+")
    w = nn.lib.stride_tricks.sliding_window_view(x, 3, writeable=True)
    with ndx.passes(threshold=0):
        w += 1
        ndx.add(ndx.ones(w.shape), w, out=w)
    np.testing.assert_array_equal(np.asarray(x), np.arange(40_002.0) + 2)


def test_elements_apart_are_computed_in_place():
    x = ndx.zeros((40, 50))
    before = x.backend.stats()["total_allocations"]
    for view in (x[::2, ::3], x.T, x[:, ::-1], x[3], x[:, 4], x[:0]):
        view += 1
    assert x.backend.stats()["total_allocations"] == before

"""Masks and index arrays of many elements: the same for any number of threads."""

import threading

import numpy as np
import pytest
from helpers import dtypes

import ndx

pytestmark = pytest.mark.threads

# Of elements enough for threads: with long, short and single axes.
SHAPES = [
    (300_007,), (1, 300_000), (300_000, 1), (3, 100_001), (100_001, 3), (640, 640),
    (70, 70, 70),
]  # fmt: skip
THREADS = (1, 2, 3, 5)


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


def numbers(shape, dtype="float64", seed=0):
    """Return different values, of which about half are zeros."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * 100 * (rng.random(shape) < 0.5)
    return dtypes.cast(x, dtype)


def mask_of(shape, density, seed=1):
    """Return a mask with a share of true elements, all of which may lie together."""
    rng = np.random.default_rng(seed)
    if density == "first":
        mask = np.zeros(shape, bool)
        mask.reshape(-1)[: mask.size // 3] = True
        return mask
    return rng.random(shape) < density


@pytest.mark.costly
@pytest.mark.parametrize("density", [0, 1e-5, 0.5, 1, "first"])
@pytest.mark.parametrize("shape", SHAPES)
def test_masks_select_the_same_elements(shape, density):
    mask = mask_of(shape, density)
    for dtype in ("float64", "uint8", "complex128"):
        x = numbers(shape, dtype)
        values = numbers(np.count_nonzero(mask), dtype, 2)
        written = x.copy()
        written[mask] = values
        filled = x.copy()
        filled[mask] = 7
        for threads in THREADS:
            ndx.set_num_threads(threads)
            a, chosen = ndx.asarray(x), ndx.asarray(mask)
            np.testing.assert_array_equal(a[chosen], x[mask])
            # Views of other layouts.
            np.testing.assert_array_equal(
                a[..., ::-1][chosen[..., ::-1]], x[..., ::-1][mask[..., ::-1]]
            )
            np.testing.assert_array_equal(a.T[chosen.T], x.T[mask.T])
            b = ndx.asarray(x, copy=True)
            b[chosen] = 7
            np.testing.assert_array_equal(b, filled)
            b = ndx.asarray(x, copy=True)
            b[chosen] = ndx.asarray(values)
            np.testing.assert_array_equal(b, written)
            b = ndx.asarray(x.T.copy()).T
            b[chosen] = ndx.asarray(values)
            np.testing.assert_array_equal(b, written)


@pytest.mark.parametrize("shape", SHAPES)
def test_places_and_rows(shape):
    rows = mask_of(shape[:1], 0.4)
    for dtype in ("bool", "int16", "float64", "complex64"):
        x = numbers(shape, dtype)
        for threads in THREADS:
            ndx.set_num_threads(threads)
            a = ndx.asarray(x)
            for part, expected in ((a, x), (a[::-1], x[::-1]), (a.T, x.T)):
                found = ndx.nonzero(part)
                assert len(found) == x.ndim
                for ours, theirs in zip(found, np.nonzero(expected), strict=True):
                    np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(a[ndx.asarray(rows)], x[rows])


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float64", "uint8", "complex128"])
@pytest.mark.parametrize("index_dtype", ["int64", "int32", "uint8"])
def test_index_arrays_select_the_same_elements(dtype, index_dtype):
    rng = np.random.default_rng(0)
    x = numbers((500, 256), dtype)
    long = x.reshape(-1)
    most = min(np.iinfo(index_dtype).max, 255)
    across = rng.integers(0, most + 1, 5000).astype(index_dtype)
    many = rng.integers(0, most + 1, 200_003).astype(index_dtype)
    if index_dtype != "uint8":
        many = (many * 497 % x.size - x.size // 2).astype(index_dtype)
        across = (across - 128).astype(index_dtype)
    for threads in THREADS:
        ndx.set_num_threads(threads)
        a, flat = ndx.asarray(x), ndx.asarray(long)
        np.testing.assert_array_equal(flat[ndx.asarray(many)], long[many])
        np.testing.assert_array_equal(flat[ndx.asarray(many)[::-2]], long[many[::-2]])
        np.testing.assert_array_equal(a[:, ndx.asarray(across)], x[:, across])
        np.testing.assert_array_equal(a[ndx.asarray(across)], x[across])
        np.testing.assert_array_equal(
            ndx.take(a, ndx.asarray(across), axis=1), np.take(x, across, axis=1)
        )
        for key in (many, (slice(None), across)):
            b, expected = ndx.asarray(x, copy=True), x.copy()
            if key is many:
                b, expected = b.reshape(-1), expected.reshape(-1)
            ours = ndx.asarray(many) if key is many else (key[0], ndx.asarray(across))
            b[ours] = 3
            expected[key] = 3
            np.testing.assert_array_equal(b, expected)
            # Of the values for one place, the last one is kept.
            values = numbers(expected[key].shape, dtype, 4)
            b[ours] = ndx.asarray(values)
            expected[key] = values
            np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("place", [0, 150_000, 299_999])
@pytest.mark.parametrize("threads", THREADS)
def test_an_index_out_of_bounds_writes_nothing(place, threads):
    ndx.set_num_threads(threads)
    x = ndx.zeros(300_000)
    indices = np.arange(300_000)
    indices[place] = 300_000
    for key in (indices, indices - 600_000):
        with pytest.raises(IndexError, match="out of bounds"):
            x[ndx.asarray(key)]
        with pytest.raises(IndexError, match="out of bounds"):
            x[ndx.asarray(key)] = 1
        assert not ndx.any(x != 0)


def test_a_mask_that_another_thread_changes():
    ndx.set_num_threads(3)
    x = ndx.asarray(np.arange(1.0, 400_001.0))
    mask = ndx.zeros(400_000, dtype=ndx.bool)
    ended = threading.Event()

    def change():
        while not ended.is_set():
            mask[...] = True
            mask[::3] = False

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(60):
            found = np.asarray(x[mask])
            # Elements in order, or the zeros of those that are not selected any more.
            assert np.all((found == np.round(found)) & (found >= 0) & (found <= 4e5))
            assert np.all(np.diff(found[found > 0]) > 0)
            places = np.asarray(ndx.nonzero(mask)[0])
            assert np.all((places >= 0) & (places < 400_000))
            x[mask] = 5.0
            x[...] = ndx.asarray(np.arange(1.0, 400_001.0))
    finally:
        ended.set()
        thread.join()

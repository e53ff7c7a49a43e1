"""Masks and index arrays of any length, layout and dtype, against NumPy's."""

import array
from collections import deque

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same

import ndx

SIZES = [1, 63, 64, 65, 200, 1500, 40_000]


def numbers(dtype, shape, seed=0):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def views(a):
    """Return views of an array that lie in memory in different ways."""
    return [a, a[::-1], a[::2], np.stack([a, a], axis=-1)[..., 0]]


@pytest.mark.parametrize("chance", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_masks(dtype, size, chance):
    for a in views(numbers(dtype, size)):
        for mask in views(np.random.default_rng(1).random(len(a)) < chance):
            m = mask if len(mask) == len(a) else np.resize(mask, len(a))
            x, k = ndx.asarray(a), ndx.asarray(m)
            assert_same(x[k], a[m])
            expected, ours = a.copy(), ndx.asarray(a.copy())
            expected[m] = 1
            ours[k] = 1
            assert_same(ours, expected)
            values = numbers("float32", int(m.sum()), seed=2)
            expected[m] = values
            ours[k] = ndx.asarray(values)
            assert_same(ours, expected)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_places_of_elements_that_are_not_zero(dtype, size):
    a = numbers(dtype, size)
    a[np.random.default_rng(1).random(size) < 0.5] = 0
    for b in [*views(a), np.ones_like(a), np.zeros_like(a), a[:60].reshape(-1, 1, 1)]:
        x = ndx.asarray(b)
        for ours, theirs in zip(ndx.nonzero(x), np.nonzero(b), strict=True):
            assert_same(ours, theirs)
        assert int(ndx.count_nonzero(x)) == np.count_nonzero(b)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    "kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_index_arrays(kind, size):
    rng = np.random.default_rng(1)
    most = min(size, 100)
    index = rng.integers(0 if kind[0] == "u" else -most, most, size).astype(kind)
    for dtype in ["int8", "int16", "float32", "float64", "complex128"]:
        for a in [numbers(dtype, size), numbers(dtype, 2 * size)[::2]]:
            for i in [index, index[::-1], index.reshape(1, -1, 1)]:
                x = ndx.asarray(a)
                assert_same(x[ndx.asarray(i)], a[i])
                expected, ours = a.copy(), ndx.asarray(a.copy())
                expected[i] = 3
                ours[ndx.asarray(i)] = 3
                assert_same(ours, expected)


KEYS = [
    np.s_[[1, 0], [2, 2]],
    np.s_[:, [1, 0]],
    np.s_[..., [3, -1, 0]],
    np.s_[..., [3, -1], 1:],
    np.s_[1, [0, 2]],
    np.s_[[0, 2], 1],
    np.s_[:, 1, [0, 2]],
    np.s_[1:, [0, 1], ::2],
    np.s_[None, [0, 1]],
    np.s_[[0, 1], None],
    np.s_[0, :, [0, 1]],
    np.s_[[True, False, True], 1],
    np.s_[:, [True, False, True, False]],
    np.s_[[0, 1], :, [0, 1]],
    np.s_[[[0], [1]], [0, 1]],
]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_keys_with_arrays_and_slices(key):
    base = numbers("float64", (3, 4, 5))
    for a in [base, base[::-1], np.asfortranarray(base)]:
        as_arrays = tuple(
            ndx.asarray(item) if isinstance(item, list) else item for item in key
        )
        for ours_key in (key, as_arrays):
            x = ndx.asarray(a)
            assert_same(x[ours_key], a[key])
            for value in (7, np.float32(2), numbers("int32", a[key].shape)):
                expected, ours = a.copy(), ndx.asarray(a.copy())
                expected[key] = value
                ours[ours_key] = value
                assert_same(ours, expected)


@pytest.mark.parametrize("size", [5, 3000])
@pytest.mark.parametrize("bad", [-1, 0])
def test_an_index_out_of_bounds_changes_nothing(size, bad):
    a = numbers("float64", size)
    x = ndx.asarray(a.copy())
    index = np.arange(size)
    index[-1] = size if bad == 0 else -size - 1
    key = ndx.asarray(index)
    message = f"index {index[-1]} is out of bounds for axis 0 with size {size}"
    with pytest.raises(IndexError, match=message):
        x[key]
    with pytest.raises(IndexError, match=message):
        x[key] = 0
    with pytest.raises(IndexError, match=message):
        x[key] = x
    assert_same(x, a)


@pytest.mark.parametrize("size", [5, 3000])
def test_keys_and_values_that_are_the_array_itself(size):
    a = np.arange(size)[::-1].copy()
    x = ndx.asarray(a.copy())
    expected = a.copy()
    expected[a] = 7
    x[x] = 7
    assert_same(x, expected)
    rows = ndx.asarray(np.stack([a, a])[:, ::-1].copy())
    rows[1, rows[0]] = 7
    rows[rows[0] * 0, rows[0]] = 5
    assert_same(rows, np.stack([np.full(size, 5), np.full(size, 7)]))
    b = np.arange(size) % 3 == 0
    y = ndx.asarray(b.copy())
    y[y] = False
    assert not np.asarray(y).any()
    c = np.arange(size)
    z = ndx.asarray(c.copy())
    c[c[::-1].copy()] = c.copy()
    z[ndx.asarray(np.arange(size)[::-1].copy())] = z
    assert_same(z, c)
    mask = np.ones(size, bool)
    w = ndx.asarray(np.arange(size))
    w[ndx.asarray(mask)] = w[::-1]
    assert_same(w, np.arange(size)[::-1])


def test_stale_keys_and_values():
    x = ndx.arange(3.0)
    with ndx.workspace("keys"):
        mask = ndx.asarray([True, False, True], copy=True)
        index = ndx.asarray([0, 2], copy=True)
        value = ndx.asarray([1.0, 2.0], copy=True)
    for key in (mask, index, (index,)):
        with pytest.raises(ndx.StaleArrayError):
            x[key]
        with pytest.raises(ndx.StaleArrayError):
            x[key] = 1.0
    with pytest.raises(ndx.StaleArrayError):
        x[ndx.asarray([0, 2])] = value
    assert_same(x, np.arange(3.0))


class Key(tuple):
    """A subclass of tuple, as named tuples are."""


class ArrayLike:
    def __array__(self, dtype=None, copy=None):
        return np.array([2, 0])


KEYS = [
    Key((0, 1)), Key((1, slice(None))), Key(()), Key((None, 1)), Key((..., 0)),
    Key(([0, 1], 2)), Key((np.array([0, 1]), slice(1, 3))), Key((Key((0, 1)), 2)),
    Key((slice(0, 1),)), range(2), range(0), (range(2), 1), [range(2)], deque([1, 0]),
    array.array("i", [1]), memoryview(b"\1"), (0, ArrayLike()),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_keys_that_are_other_tuples_or_sequences(key):
    a = np.arange(6.0).reshape(2, 3)
    x = ndx.asarray(a, copy=True)
    assert_same(x[key], np.asarray(a[key]))
    x[key] = 9
    a[key] = 9
    assert_same(x, a)
    x[key] = ndx.asarray(7.0)
    a[key] = 7
    assert_same(x, a)


@pytest.mark.parametrize("key", ["a", b"", {0}, range(3), Key((0, 3)), Key((0, "a"))])
def test_keys_that_are_no_other_tuples_or_sequences(key):
    x = ndx.zeros((2, 3))
    with pytest.raises(IndexError):
        x[key]
    with pytest.raises(IndexError):
        x[key] = 1


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d[0] in "iuf"])
@pytest.mark.parametrize("bounds", [(10, 50), (50, 10)])
def test_clip(dtype, bounds):
    for size in (3, 100, 40_000):
        a = numbers(dtype, size)
        if dtype[0] == "f":
            a[::7] = np.nan
        for b in [*views(a), np.resize(a, (size // 3, 3)), np.resize(a, (2, 4, 5)).T]:
            x = ndx.asarray(b)
            assert_same(ndx.clip(x, *bounds), np.clip(b, *bounds))
            assert_same(x.clip(*bounds), np.clip(b, *bounds))
            y = ndx.asarray(b.copy())
            assert ndx.clip(y, *bounds, out=y) is y
            assert_same(y, np.clip(b, *bounds))


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d[0] in "iu"])
@pytest.mark.parametrize("bounds", [(-1, 300), (-(2**70), 2**70), (5, 2**64), (-5, 7)])
def test_clip_by_integers_beyond_the_dtype(dtype, bounds):
    a = numbers(dtype, 100)
    x = ndx.asarray(a)
    expected = np.clip(a, *bounds)
    for found in (x.clip(*bounds), np.clip(x, *bounds), ndx.clip(x, *bounds)):
        assert_same(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint64"])
@pytest.mark.parametrize("bounds", [(None, 2**64), (-129, None), (-129, 2**64)])
def test_clip_by_one_bound_and_one_beyond_the_dtype(dtype, bounds):
    a = np.arange(100, dtype=dtype)
    x, limit = ndx.asarray(a), a // 2
    low, high = bounds
    assert_same(ndx.clip(x, low, high), a)
    assert_same(ndx.clip(x, low, ndx.asarray(limit)), limit)
    assert_same(ndx.clip(x, ndx.asarray(limit), high), a)
    assert_same(ndx.clip(x[::2], low, high, out=x[::2]), a[::2])
    assert_same(ndx.fuse(ndx.clip)(x, low, high), a)
    assert_same(ndx.fuse(lambda x: ndx.clip(x, low, high) + 1)(x), a + 1)


@pytest.mark.parametrize(
    "bounds", [(300, 400), (-5, -1), (300, 0), (300, None), (None, -1)]
)
def test_clip_to_integers_that_the_dtype_lacks(bounds):
    x = ndx.zeros(3, dtype="uint8")
    for y in (x, np.zeros(3, "uint8")):
        with pytest.raises(OverflowError):
            np.clip(y, *bounds)
    with pytest.raises(OverflowError, match="does not fit uint8"):
        ndx.clip(x, *bounds)


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_where_of_operands_in_all_layouts(dtype):
    for size in (3, 100, 40_000):
        a, b = numbers(dtype, size), numbers(dtype, size, seed=1)
        mask = np.random.default_rng(2).random(size) < 0.5
        for m, p, q in [
            (mask, a, b),
            (mask[::-1], a, b[::-1]),
            (mask, a[:1], b),
            (mask, a, b[:1]),
            (mask, a[:1], b[:1]),
            (mask[:1], a, b),
        ]:
            ours = ndx.asarray(m), ndx.asarray(p), ndx.asarray(q)
            assert_same(ndx.where(*ours), np.where(m, p, q))
            assert_same(np.where(*ours), np.where(m, p, q))

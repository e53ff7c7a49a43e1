"""Copies and casts between layouts, of a few elements and of more."""

import itertools

import numpy as np
import pytest

import ndx

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip
SHAPES = [(1,), (7,), (5, 3), (30, 3), (3, 30), (40, 40), (4, 5, 6), (2, 3, 2, 2)]


def values(dtype, shape, into):
    """Return numbers that a cast keeps in range."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(0 if into[0] == "u" else -100, 100, shape)
    if dtype == "bool":
        return numbers % 3 == 0
    if dtype[0] == "c":
        return (numbers / 3 + 1j * numbers[::-1]).astype(dtype)
    found = (numbers / 3 if dtype[0] == "f" else numbers).astype(dtype)
    if dtype[0] == "f" and into[0] in "fcb":
        found.flat[0] = np.nan
    return found


def layouts(x):
    """Yield an array in several layouts."""
    yield x
    yield np.asfortranarray(x)
    for step in (2, -2):
        room = np.zeros([2 * length for length in x.shape], x.dtype)
        view = room[(slice(None, None, step),) * x.ndim]
        view[...] = x
        yield view


@pytest.mark.parametrize("into", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts_of_all_layouts(dtype, into):
    if dtype[0] == "c" and into[0] != "c":
        pytest.skip("the imaginary parts would be lost")
    for shape in SHAPES:
        for x in layouts(values(dtype, shape, into)):
            a, expected = ndx.asarray(x), x.astype(into)
            found = np.asarray(ndx.astype(a, np.dtype(into), copy=True))
            assert found.dtype == into
            np.testing.assert_array_equal(found, expected)
            gaps = ndx.zeros((*shape, 2), dtype=into)
            gaps[..., 0] = a
            np.testing.assert_array_equal(np.asarray(gaps)[..., 0], expected)
            assert not np.asarray(gaps)[..., 1].any()
            wide = ndx.zeros((3, *shape), dtype=into)[:, ::-1]
            wide[...] = a
            np.testing.assert_array_equal(
                np.asarray(wide), np.broadcast_to(expected, wide.shape)
            )


@pytest.mark.parametrize("into", [d for d in DTYPES if d != "bool"])
def test_bytes_of_bools(into):
    """Any byte but 0 is true."""
    x = np.frombuffer(bytes([0, 1, 2, 255]), np.bool_)
    assert ndx.astype(ndx.asarray(x), np.dtype(into)).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_fills_with_gaps(dtype, shape):
    for axes in itertools.permutations(range(len(shape) + 1)):
        x = ndx.permute_dims(ndx.zeros((*shape, 2), dtype=dtype), axes)
        key = tuple(slice(1, None) if axis == len(shape) else slice(None)
                    for axis in axes)  # fmt: skip
        expected = np.asarray(x).copy()
        expected[key] = 1
        x[key] = 1
        np.testing.assert_array_equal(np.asarray(x), expected)

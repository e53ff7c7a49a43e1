"""Places of extremes among many elements: the first, on any number of threads."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.passes import in_file, passing

import ndx

SHAPES = [(40_000,), (300, 400), (7, 50, 300), (50_000, 3), (3, 50_000), (300_000,)]


def numbers(shape, dtype):
    """Return values with many equal ones and, of floats, a few NaN."""
    rng = np.random.default_rng(len(shape))
    a = rng.normal(size=shape) * 50
    a = np.abs(a).astype(dtype) if np.dtype(dtype).kind == "u" else a.astype(dtype)
    if np.dtype(dtype).kind == "f" and a.ndim > 1:
        a = np.round(a)
        a.flat[rng.integers(0, a.size, 3)] = np.nan
    return a


def check(a, x):
    for axis in [None, *range(a.ndim)]:
        for name in ("argmax", "argmin"):
            wanted = getattr(np, name)(a, axis=axis)
            found = getattr(ndx, name)(x, axis=axis)
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_the_first_of_equal_ones(dtype):
    for shape in SHAPES:
        a = numbers(shape, dtype)
        for b in (a, a.T, a[::-1]):
            check(b, ndx.asarray(b))


@pytest.mark.threads
@pytest.mark.parametrize("dtype", ["int8", "float32", "float64", "uint64"])
@pytest.mark.parametrize("memory", ["1GiB", 0])
def test_in_files(tmp_path, dtype, memory):
    with passing(tmp_path, threads=2, memory=memory) as calls:
        for shape in SHAPES:
            a = numbers(shape, dtype)
            x = in_file(a)
            del calls[:]
            check(a, x)
            assert {"argmax", "argmin"} <= {name for _, _, name in calls}


def test_all_are_nan_or_equal():
    for value in (np.nan, 0.0, -0.0, np.inf):
        a = np.full((400, 300), value)
        check(a, ndx.asarray(a))

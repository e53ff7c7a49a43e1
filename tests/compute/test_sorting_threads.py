"""The lines of large arrays are sorted on threads, by NumPy's sorts."""

import numpy as np
import pytest

import ndx

pytestmark = pytest.mark.threads

SHAPES = [(500, 301), (300, 5, 100), (3, 70_000), (70_000, 3), (200_003,), (1, 70_000)]


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


def numbers(shape, dtype, special):
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(shape) * 300).astype(dtype)
    if special and x.dtype.kind in "fc":
        flat = x.reshape(-1)
        flat[::50] = np.nan
        flat[1::50] = -0.0
        flat[2::50] = 0.0
        flat[3::50] = np.inf
    return x


@pytest.mark.costly
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "int64", "uint8", "complex64"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_lines_are_sorted(shape, dtype, special):
    x = numbers(shape, dtype, special)
    for axis in range(x.ndim):
        expected = np.sort(x, axis=axis, kind="stable")
        for threads in (1, 2, 3, 5):
            ndx.set_num_threads(threads)
            a = ndx.asarray(x)
            assert ndx.sort(a, axis=axis).tobytes() == expected.tobytes()
            if special:
                continue
            np.testing.assert_array_equal(
                ndx.sort(a, axis=axis, stable=False, descending=True),
                np.flip(expected, axis=axis),
            )
            # In place, with gaps and in another order.
            for view in (np.asfortranarray(x), np.repeat(x, 2, axis=-1)[..., ::2]):
                b = ndx.asarray(view.copy(order="K"), copy=None)
                b.sort(axis=axis)
                np.testing.assert_array_equal(b, expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_lines_that_share_elements_stay_those_elements(threads):
    ndx.set_num_threads(threads)
    memory = np.random.default_rng(0).standard_normal(1300)
    before = np.sort(memory)
    view = np.lib.stride_tricks.as_strided(memory, (300, 1001), (8, 8))
    ndx.asarray(view, copy=None).sort()
    np.testing.assert_array_equal(np.sort(memory), before)

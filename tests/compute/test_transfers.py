"""Copies, casts and fills: NumPy's values in any layout, for any number of threads."""

import itertools
import os

import numpy as np
import pytest
from helpers import dtypes
from helpers.commands import run_python
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy

NAMES = dtypes.ALL
# An assignment of complex values to bools is refused; ndx.astype does it.
PAIRS = [
    (dtype, into)
    for dtype, into in itertools.product(NAMES, NAMES)
    if dtype[0] != "c" or into[0] == "c" or into == "bool"
]
# Below and above the number of elements that are copied without the GIL and on threads.
SHAPES = [
    (0,), (1,), (7,), (40, 3), (3, 40), (17, 1, 19), (600, 601), (120_000, 3),
    (3, 120_000), (300_007,), (70, 70, 70), (1, 300_000), (256, 1024),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _restored():
    before = ndx.get_num_threads()
    yield
    ndx.set_num_threads(before)


def numbers(shape, dtype, seed=0):
    """Return many different values: large ones, zeros and special ones too."""
    rng = np.random.default_rng(seed)
    found = rng.standard_normal(shape) * 300
    flat = found.reshape(-1)
    flat[::5] *= 1e15
    flat[::9] *= 1e30
    flat[::7] = 0
    flat[3::11] = np.nan
    flat[4::13] = np.inf
    flat[6::17] = -np.inf
    with np.errstate(all="ignore"):
        if np.dtype(dtype).kind == "c":
            found = found + 1j * rng.standard_normal(shape)
        return found.astype(dtype)


def representable(x, into):
    """Return values that the dtype can hold: what others become is not defined."""
    if x.dtype.kind == "f" and np.dtype(into).kind in "iu":
        x = np.fmod(np.nan_to_num(x), x.dtype.type(128))
        return np.abs(x) if into[0] == "u" else x
    return x


def laid_out(draw, array):
    """Return the same elements as they lie in memory in a drawn way."""
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, -1, 2, -3])) for _ in order]
    lengths = [
        array.shape[axis] * abs(step) for axis, step in zip(order, steps, strict=True)
    ]
    view = np.zeros(lengths, array.dtype)
    view = view[tuple(slice(None, None, step) for step in steps)]
    view = view.transpose(tuple(np.argsort(order).tolist()))
    view[...] = array
    return view


def same(a, b):
    """Whether two arrays are equal to the last bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.threads
@pytest.mark.parametrize(("dtype", "into"), PAIRS)
def test_casts_give_the_values_of_numpy(dtype, into):
    for size in (1, 100, 150_001):
        x = representable(numbers(size, dtype), into)
        for part in (x, x[::-1], x[::2]):
            with np.errstate(all="ignore"):
                expected = part.astype(into)
            for threads in (1, 3):
                ndx.set_num_threads(threads)
                a = ndx.asarray(part, copy=None)
                assert same(ndx.astype(a, np.dtype(into)), expected)
                if into == "bool" and dtype[0] == "c":
                    continue
                out = ndx.zeros((2, size), dtype=into)
                out[:, : a.size] = a
                assert same(out[1, : a.size], expected)


@pytest.mark.parametrize("into", NAMES[1:])
def test_bytes_of_bools(into):
    """Any byte but 0 is true."""
    x = np.frombuffer(bytes([0, 1, 2, 255]), np.bool_)
    assert ndx.astype(ndx.asarray(x), np.dtype(into)).tolist() == [0, 1, 1, 1]


@pytest.mark.parametrize("size", [3, 100_000])
def test_casts_report_errors_where_numpy_reports_them(size):
    x = ndx.asarray(np.full(size, 1e300))
    with ndx.numpy.errstate(all="raise"), pytest.raises(FloatingPointError):
        ndx.astype(x, ndx.float32)
    with np.errstate(all="raise"):
        assert np.all(np.isinf(ndx.astype(x, ndx.float32)))


@pytest.mark.threads
@examples(60)
@given(st.data(), st.sampled_from(SHAPES), st.sampled_from(PAIRS))
def test_any_layout_is_copied_to_any_other(data, shape, pair):
    dtype, into = pair
    if dtype[0] == "c" and into == "bool":
        into = dtype
    if shape and shape[0] > 1000:
        # The values are those of casts, which are tested above.
        into = dtype if data.draw(st.booleans()) else into
    x = representable(numbers(shape, dtype), into)
    source = laid_out(data.draw, x)
    target = laid_out(data.draw, numbers(shape, into, 1))
    with np.errstate(all="ignore"):
        expected = x.astype(into)
    for threads in (1, 2, 5):
        ndx.set_num_threads(threads)
        target[...] = 1
        ndx.asarray(target, copy=None)[...] = ndx.asarray(source, copy=None)
        assert target.tobytes() == expected.tobytes()
        # Between the elements nothing has been written.
        base = target if target.base is None else target.base
        assert np.count_nonzero(base) <= x.size
    order = data.draw(st.sampled_from("CF"))
    copied = ndx.asarray(source, copy=None).copy(order=order)
    assert same(copied, x)


@pytest.mark.threads
@pytest.mark.parametrize("dtype", ["float64", "uint8", "complex128"])
@pytest.mark.parametrize("shape", [(300_000, 3), (3, 300_000), (1000, 1000)])
def test_broadcast_operands_are_copied(dtype, shape):
    ndx.set_num_threads(3)
    for part in [(shape[1],), (shape[0], 1), (1, 1), (1,)]:
        x = numbers(part, dtype)
        out = ndx.zeros(shape, dtype=dtype)
        out[...] = ndx.asarray(x)
        assert same(out, np.broadcast_to(x, shape))
    with pytest.raises(ValueError, match="broadcast"):
        out[...] = ndx.asarray(numbers(shape[0] + 1, dtype))


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("size", [10, 400_000])
def test_operands_that_overlap(threads, size):
    ndx.set_num_threads(threads)
    for step in (1, -1, 2):
        x = numbers(size, "float64")
        a = ndx.asarray(x, copy=True)
        n = len(range(0, size - 3, abs(step)))
        expected = x.copy()
        expected[3:][::step][:n] = x[: size - 3][::step][:n].copy()
        a[3:][::step][:n] = a[: size - 3][::step][:n]
        assert same(a, expected)
    side = int(size**0.5)
    x = numbers((side, side), "float64")
    a = ndx.asarray(x, copy=True)
    a[...] = a.T
    assert same(a, x.T)
    # The same elements, in another dtype of the same size.
    x = np.arange(size, dtype="int64")
    a = ndx.asarray(x, copy=True)
    ndx.asarray(np.asarray(a).view("float64"), copy=None)[...] = a
    assert np.asarray(a).view("float64").tolist() == x.tolist()


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 3])
def test_of_elements_for_one_place_one_is_kept(threads):
    ndx.set_num_threads(threads)
    memory = np.zeros(4)
    view = np.lib.stride_tricks.as_strided(memory, (100_000, 4), (0, 8))
    ndx.asarray(view, copy=None)[...] = ndx.asarray(np.arange(4e5).reshape(-1, 4))
    assert set(memory.astype(int) % 4) == {0, 1, 2, 3}
    ndx.asarray(view, copy=None)[...] = 7.0
    assert memory.tolist() == [7.0] * 4


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("dtype", ["bool", "int16", "float64", "complex128"])
@pytest.mark.parametrize("nbytes", [(2 << 20) - 16, (2 << 20) + 16, (33 << 20) + 48])
def test_fills_on_threads(dtype, nbytes, threads):
    ndx.set_num_threads(threads)
    size = nbytes // np.dtype(dtype).itemsize
    room = np.zeros(size + 7, dtype)
    target = room[3 : 3 + size]
    ndx.asarray(target, copy=None)[...] = 1
    assert np.all(target == 1)
    assert not np.any(room[:3])
    assert not np.any(room[3 + size :])
    if size % 4 == 0:
        across = ndx.asarray(target.reshape(4, -1).T[:, ::2], copy=None)
        across[...] = 0
        assert np.count_nonzero(target) == size // 2
        # The constant is one of the elements that are written.
        target[0] = 1
        across[...] = across[0, 0]
        assert np.count_nonzero(target) == size


@pytest.mark.threads
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_child_copies_and_selects_while_the_parent_has_threads():
    code = """
import os, ndx
ndx.set_num_threads(3)
x = ndx.reshape(ndx.arange(1_000_000), (1000, 1000))
def turn():
    y = ndx.astype(x.T.copy(), ndx.float32)
    chosen = x[x % 2 == 0]
    return (int(chosen[-1]) == 999_998 and float(y[1, 0]) == 1.0
            and int(ndx.sort(x, axis=0, descending=True)[0, 0]) == 999_000
            and int(ndx.searchsorted(x[0, :], x)[0, 7]) == 7)
assert turn()
for _ in range(3):
    child = os.fork()
    if not child:
        os._exit(not turn())
    assert turn()
    assert os.waitpid(child, 0)[1] == 0
print("done")
"""
    assert run_python(code) == "done\n"

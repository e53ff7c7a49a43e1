"""Fourier transforms by NumPy's loops: to the last bit those of NumPy's functions."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy as ndx_numpy

ONE = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
MORE = ["fftn", "ifftn", "rfftn", "irfftn"]
SHAPES = [(1,), (2,), (7,), (1, 1), (3, 4), (4, 1), (2, 3, 4), (0, 3), (2, 0), (9, 65)]
TYPES = ["bool", "int64", "uint8", "float16", "float32", "float64", "complex64"]
TYPES += ["complex128"]


def make(shape, dtype, layout, seed):
    a = np.random.default_rng(seed).normal(size=shape) * 5
    a = dtypes.cast(a, dtype)
    if layout == "strided":
        return np.repeat(np.repeat(a, 2, axis=-1), 2, axis=0)[::2][..., ::-2]
    if layout == "transposed":
        return np.asfortranarray(a)
    return np.broadcast_to(a, (2, *a.shape)) if layout == "broadcast" else a


ARRAYS = st.builds(
    make,
    st.sampled_from(SHAPES),
    st.sampled_from(TYPES),
    st.sampled_from(["plain", "strided", "transposed", "broadcast"]),
    st.integers(0, 9),
)
NORMS = st.sampled_from(["backward", "ortho", "forward"])


def compare(call, a, faces):
    expected = failure = None
    try:
        expected = call(np, a)
    except (ValueError, TypeError, IndexError) as error:
        failure = error
    for face in faces:
        x = ndx.asarray(a, copy=None)
        if failure is not None:
            with pytest.raises((ValueError, TypeError, IndexError)):
                call(face, x)
        else:
            assert_same(call(face, x), expected)
        assert_same(x, a)


@examples(500)
@given(
    a=ARRAYS,
    name=st.sampled_from(ONE),
    n=st.none() | st.integers(0, 9),
    axis=st.integers(-3, 2),
    norm=NORMS,
)
def test_one_axis(a, name, n, axis, norm):
    if a.size == 0 and name in ("irfft", "hfft"):
        return  # NumPy reads beyond the end
    options = {"n": n, "axis": axis, "norm": norm}
    compare(lambda xp, x: getattr(xp.fft, name)(x, **options), a, (ndx, np, ndx_numpy))
    compare(lambda xp, x: getattr(xp.fft, name)(x, n, axis), a, (np, ndx_numpy))


@examples(300)
@given(a=ARRAYS, name=st.sampled_from(MORE), data=st.data(), norm=NORMS)
def test_more_axes(a, name, data, norm):
    if a.size == 0:
        return
    axes = data.draw(
        st.none() | st.permutations(range(a.ndim)).map(lambda x: tuple(x[:2]))
    )
    s = None
    if axes is not None:
        s = data.draw(st.none() | st.tuples(*[st.integers(1, 6) for _ in axes]))
    compare(
        lambda xp, x: getattr(xp.fft, name)(x, s=s, axes=axes, norm=norm),
        a,
        (ndx, np, ndx_numpy),
    )


def test_arguments_of_numpys_face():
    a = np.arange(6.0).reshape(2, 3)
    for call in (
        lambda np, x: np.fft.fft(x, None, 0, "ortho"),
        lambda np, x: np.fft.fft(x, norm=None),
        lambda np, x: np.fft.fftn(x, [2, 2], [0, 1]),
        lambda np, x: np.fft.fft(x, np.int64(4)),
        lambda np, x: np.fft.fft2(x),
    ):
        for face in (np, ndx_numpy):
            assert_same(call(face, ndx.asarray(a)), call(np, a))
    for call in (
        lambda np, x: np.fft.fft(x, 3, n=3),
        lambda np, x: np.fft.fft(x, points=3),
        lambda np, x: np.fft.fft(x, norm="x"),
    ):
        for face in (np, ndx_numpy):
            with pytest.raises((TypeError, ValueError)):
                call(face, ndx.asarray(a))
    out = ndx.empty((2, 3), dtype="complex128")
    assert np.fft.fft(ndx.asarray(a), out=out) is out
    assert_same(out, np.fft.fft(a))


@pytest.mark.parametrize("name", [*ONE, *MORE])
def test_stale_operands(name):
    with ndx.workspace("fourier"):
        x = ndx.ones((2, 2))
    for face in (ndx, np):
        with pytest.raises(ndx.StaleArrayError):
            getattr(face.fft, name)(x)


def test_large_arrays_without_the_gil():
    a = np.random.default_rng(0).normal(size=(300, 256))
    assert_same(ndx.fft.rfftn(ndx.asarray(a)), np.fft.rfftn(a))
    assert_same(ndx.fft.fft(ndx.asarray(a), axis=0), np.fft.fft(a, axis=0))


@pytest.mark.parametrize("n", [1, 2, 5, 8, 40_000, 1 << 20])
def test_frequencies(n):
    steps = np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])
    assert_same(ndx.fft.fftfreq(n, d=0.3), steps / (n * 0.3))
    assert_same(ndx.fft.rfftfreq(n, d=0.3), np.arange(n // 2 + 1) / (n * 0.3))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in [*ONE, *MORE]
        for dtype in TYPES
        if not (name in ("rfft", "rfftn", "ihfft") and dtype.startswith("complex"))
    ],
)
def test_empty_axes_are_all_zeros(name, dtype):
    """NumPy's results of real numbers are memory that nobody wrote to."""
    real = name in ("irfft", "irfftn", "hfft")
    for shape in ((0,), (3, 0)):
        x = ndx.asarray(np.zeros(shape, dtype))
        for n in (1, 2, 5, 8):
            how = {"n": n} if name in ONE else {"s": (n,), "axes": (-1,)}
            for xp in (ndx, ndx_numpy):
                if xp is ndx and np.dtype(dtype).kind not in "fc":
                    continue
                used = [xp.full(k, 7.0) for k in range(1, 20)]
                del used
                found = getattr(xp.fft, name)(x, **how)
                expected = getattr(np.fft, name)(np.asarray(x), **how)
                assert found.dtype == expected.dtype
                assert found.shape == expected.shape
                assert (found.dtype.kind == "f") == real
                assert not np.asarray(found).any()
        with ndx_numpy.errstate(all="raise"):
            assert not np.asarray(ndx_numpy.fft.irfft(x, n=6)).any()
    with pytest.raises(ValueError, match="point"):
        getattr(ndx_numpy.fft, name)(ndx_numpy.zeros((0,)))

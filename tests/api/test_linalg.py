"""Products, decompositions and Fourier transforms: as NumPy's; each named tuple."""

import numpy as np
import pytest
from helpers import arrays, dtypes
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

NUMERIC = dtypes.FLOATS + dtypes.COMPLEX
TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}


def matrices(dtype, *shape, seed=0):
    """Return (a NumPy array, an NDArray of it, transposed in memory)."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    a = a.astype(dtype)
    return a, ndx.matrix_transpose(
        ndx.asarray(np.matrix_transpose(a).copy(), copy=True)
    )


@given(arrays.pairs(dtypes.NUMERIC, min_dims=1, max_dims=3, finite=True), st.data())
def test_tensordot(pair, data):
    a, x = pair
    count = data.draw(st.integers(0, a.ndim))
    order = data.draw(st.permutations(range(a.ndim)))
    b, y = np.transpose(a, order), ndx.permute_dims(x, order)
    source = tuple(range(count))
    target = tuple(order.index(axis) - a.ndim for axis in source)
    found = ndx.tensordot(x, y, axes=(source, target))
    assert_same(found, np.tensordot(a, b, (source, target)), rtol=1e-6)
    found = ndx.tensordot(x, ndx.permute_dims(x, range(a.ndim)[::-1]), axes=1)
    assert_same(found, np.tensordot(a, a.T, 1), rtol=1e-6)


@given(arrays.pairs(dtypes.NUMERIC, min_dims=1, max_dims=3, finite=True), st.data())
def test_vecdot(pair, data):
    a, x = pair
    axis = data.draw(st.integers(-a.ndim, -1))
    assert_same(ndx.vecdot(x, x, axis=axis), np.vecdot(a, a, axis=axis), rtol=1e-6)
    assert_same(ndx.vecdot(x, x[:1], axis=-1), np.vecdot(a, a[:1]), rtol=1e-6) if (
        a.ndim > 1 and a.shape[0]
    ) else None


def test_matmul_into_an_array():
    a, x = matrices("float64", 4, 4)
    out = ndx.empty((4, 4))
    assert ndx.matmul(x, x, out=out) is out
    assert_same(out, a @ a, rtol=1e-12)
    # It may overlap the operands.
    y = ndx.asarray(a, copy=True)
    ndx.matmul(y, y, out=y)
    assert_same(y, a @ a, rtol=1e-12)
    with pytest.raises(TypeError, match="out must be an NDArray"):
        ndx.matmul(x, x, out=np.empty((4, 4)))
    with pytest.raises(ValueError, match="out has shape"):
        ndx.matmul(x, x, out=ndx.empty((4, 3)))
    with pytest.raises(TypeError, match="out has dtype"):
        ndx.matmul(x, x, out=ndx.empty((4, 4), dtype="float32"))


@pytest.mark.parametrize("dtype", NUMERIC)
def test_decompositions(dtype):
    a, x = matrices(dtype, 2, 5, 3)
    close = {"rtol": 0, "atol": TOLERANCE[dtype] * 10}
    u, s, vh = ndx.linalg.svd(x, full_matrices=False)
    assert_same((u * s[:, None, :]) @ vh, a, **close)
    assert ndx.linalg.svd(x).U.shape == (2, 5, 5)
    assert_same(ndx.linalg.svdvals(x), np.linalg.svdvals(a), **close)
    found = ndx.linalg.qr(x)
    assert_same(found.Q @ found.R, a, **close)
    assert ndx.linalg.qr(x, mode="complete").Q.shape == (2, 5, 5)
    assert_same(ndx.linalg.pinv(x) @ x, np.stack([np.eye(3, dtype=dtype)] * 2), **close)
    assert ndx.linalg.matrix_rank(x).tolist() == [3, 3]
    square = ndx.matrix_transpose(ndx.conj(x)) @ x
    w, v = ndx.linalg.eigh(square)
    assert_same(v * w[:, None, :], np.asarray(square @ v), **close)
    assert_same(ndx.linalg.eigvalsh(square), np.asarray(w), **close)
    values, vectors = ndx.linalg.eig(square)
    assert values.dtype == ndx.result_type(square, 1j)
    assert_same(vectors * values[:, None, :], np.asarray(square @ vectors), **close)
    assert ndx.linalg.eigvals(square).shape == (2, 3)
    lower = ndx.linalg.cholesky(square)
    assert_same(lower @ ndx.conj(lower).mT, np.asarray(square), **close)
    upper = ndx.linalg.cholesky(square, upper=True)
    assert_same(ndx.conj(upper).mT @ upper, np.asarray(square), **close)


@pytest.mark.parametrize("dtype", NUMERIC)
def test_square_matrices(dtype):
    a, x = matrices(dtype, 2, 3, 3)
    close = {"rtol": 0, "atol": TOLERANCE[dtype] * 100}
    eye = np.stack([np.eye(3, dtype=dtype)] * 2)
    assert_same(ndx.linalg.inv(x) @ x, eye, **close)
    assert_same(x @ ndx.linalg.solve(x, ndx.asarray(eye)), eye, **close)
    assert_same(ndx.linalg.solve(x[0], x[0, :, 0]), eye[0, :, 0], **close)
    assert_same(ndx.linalg.det(x), np.linalg.det(a), **close)
    sign, logabsdet = ndx.linalg.slogdet(x)
    assert_same(sign * ndx.exp(logabsdet), np.linalg.det(a), **close)
    assert_same(ndx.linalg.matrix_power(x, 3), a @ a @ a, **close)
    assert_same(ndx.linalg.matrix_power(x, 0), eye, **close)
    assert_same(ndx.linalg.trace(x, offset=1), np.trace(a, 1, -2, -1), **close)
    assert_same(ndx.linalg.cross(x, x[:1]), np.linalg.cross(a, a[:1]), **close)
    assert_same(ndx.linalg.outer(x[0, 0], x[1, 1]), np.outer(a[0, 0], a[1, 1]), **close)


@pytest.mark.parametrize("order", [1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", 0, 3.5])
@pytest.mark.parametrize("keepdims", [True, False])
def test_norms(order, keepdims):
    a, x = matrices("complex128", 2, 3, 4)
    options = {"ord": order, "keepdims": keepdims}
    if order not in (0, 3.5):
        expected = np.linalg.matrix_norm(a, **options)
        assert_same(ndx.linalg.matrix_norm(x, **options), expected, rtol=1e-12)
    if not isinstance(order, str):
        for axis in (None, 1, (0, 2)):
            found = ndx.linalg.vector_norm(x, axis=axis, **options)
            if axis != (0, 2):
                expected = np.linalg.vector_norm(a, axis=axis, **options)
                assert_same(found, expected, rtol=1e-12)


def test_small_integers_are_traced_in_int64():
    x = ndx.full((3, 3), 100, dtype="int8")
    assert ndx.linalg.trace(x).item() == 300
    assert ndx.linalg.trace(x, dtype="float32").dtype == "float32"


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("dtype", NUMERIC)
def test_transforms(dtype, norm):
    a, x = matrices(dtype, 4, 6)
    close = {"rtol": TOLERANCE[dtype] * 10, "atol": TOLERANCE[dtype] * 10}
    real = dtype in dtypes.FLOATS
    one = ("rfft", "ihfft") if real else ("fft", "ifft", "hfft", "irfft")
    more = ("rfftn",) if real else ("fftn", "ifftn", "irfftn")
    for name in one:
        for options in ({}, {"axis": 0}, {"n": 3}, {"n": 9, "axis": -2}):
            found = getattr(ndx.fft, name)(x, norm=norm, **options)
            expected = getattr(np.fft, name)(a, norm=norm, **options)
            assert_same(found, expected, **close)
    for name in more:
        for options in ({}, {"axes": (0,)}, {"s": (3, 9), "axes": (1, 0)}):
            found = getattr(ndx.fft, name)(x, norm=norm, **options)
            expected = getattr(np.fft, name)(a, norm=norm, **options)
            assert_same(found, expected, **close)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies(n):
    assert_same(ndx.fft.fftfreq(n, d=0.5), np.fft.fftfreq(n, 0.5))
    assert_same(ndx.fft.rfftfreq(n, d=0.5), np.fft.rfftfreq(n, 0.5))
    assert ndx.fft.fftfreq(n, dtype="float32").dtype == "float32"
    x = ndx.reshape(ndx.arange(2 * n), (2, n))
    for axes in (None, 1, (0, -1)):
        a = np.asarray(x)
        assert_same(ndx.fft.fftshift(x, axes=axes), np.fft.fftshift(a, axes))
        assert_same(ndx.fft.ifftshift(x, axes=axes), np.fft.ifftshift(a, axes))


X = ndx.ones((2, 3))


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: ndx.tensordot(X, X.T), ValueError, "differ in number or lengths"),
        (lambda: ndx.tensordot(X, X, axes=3), ValueError, "valid are 0 to 2"),
        (
            lambda: ndx.tensordot(X, X, axes=((0, 0), (0, 0))),
            ValueError,
            "an axis twice",
        ),
        (lambda: ndx.vecdot(X, ndx.ones(2)), ValueError, "not broadcast"),
        (lambda: ndx.vecdot(X, X, axis=-3), ValueError, "out of range"),
        (lambda: ndx.linalg.cross(X, X, axis=0), ValueError, "both must be 3"),
        (lambda: ndx.linalg.outer(X, X), ValueError, "two vectors"),
        (lambda: ndx.linalg.qr(X, mode="r"), ValueError, "'reduced' and 'complete'"),
        (lambda: ndx.linalg.inv(X), np.linalg.LinAlgError, "square"),
        (lambda: ndx.linalg.inv(ndx.zeros((2, 2))), np.linalg.LinAlgError, "ingular"),
        (lambda: ndx.linalg.cholesky(-ndx.eye(2)), np.linalg.LinAlgError, "positive"),
        (lambda: ndx.fft.fft(X, axis=2), ValueError, "out of range"),
        (lambda: ndx.fft.fft(X, n=0), ValueError, "0"),
        (lambda: ndx.fft.rfft(X, norm="none"), ValueError, "'none' is unknown"),
        (lambda: ndx.fft.fftn(X, s=(2,)), ValueError, "needs axes"),
        (lambda: ndx.fft.fftn(X, axes=(2,)), ValueError, "out of range"),
        (lambda: ndx.fft.fftfreq(0), ValueError, "1 or more"),
        (lambda: ndx.fft.rfftfreq(-1), ValueError, "1 or more"),
        (lambda: ndx.fft.fftshift(X, axes=2), ValueError, "out of range"),
    ],
)
def test_errors(use, error, message):
    with pytest.raises(error, match=message):
        use()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64"])
def test_pinv_of_integers(dtype):
    """NumPy has no precision for them."""
    x = ndx.asarray(np.eye(2), dtype=dtype)
    assert_same(ndx.linalg.pinv(x), np.eye(2), rtol=1e-15, atol=1e-15)

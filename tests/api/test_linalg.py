"""Products and decompositions: outputs, each named tuple, and errors."""

import numpy as np
import pytest
from helpers.compare import assert_same

import ndx

TOLERANCE = {"float32": 1e-5, "complex64": 1e-5, "float64": 1e-12, "complex128": 1e-12}
NUMERIC = tuple(TOLERANCE)


def matrices(dtype, *shape, seed=0):
    """Return (a NumPy array, an NDArray of it, transposed in memory)."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype[0] == "c" else 0)
    a = a.astype(dtype)
    return a, ndx.matrix_transpose(
        ndx.asarray(np.matrix_transpose(a).copy(), copy=True)
    )


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


def test_small_integers_are_traced_in_int64():
    x = ndx.full((3, 3), 100, dtype="int8")
    assert ndx.linalg.trace(x).item() == 300
    assert ndx.linalg.trace(x, dtype="float32").dtype == "float32"


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

"""The matrix product against NumPy's: all layouts, stacks, vectors, outputs."""

import itertools

import numpy as np
import pytest
from helpers import dtypes, patterns
from helpers.compare import assert_same
from hypothesis import given
from hypothesis import strategies as st

import ndx

RNG = np.random.default_rng(0)
TOLERANCE = {"float32": 1e-4, "complex64": 1e-4, "float64": 1e-11, "complex128": 1e-11}


@st.composite
def operands(draw):
    """Draw the shapes of a product: vectors, matrices and stacks that broadcast."""
    side = st.integers(0, 5)
    m, n, p = draw(side), draw(side), draw(side)
    first, second = draw(patterns.broadcastable(max_dims=2))
    a = (n,) if draw(st.integers(0, 4)) == 0 else (*first, m, n)
    b = (n,) if draw(st.integers(0, 4)) == 0 else (*second, n, p)
    return a, b


@given(st.data(), operands(), st.sampled_from(dtypes.ALL), st.sampled_from(dtypes.ALL))
def test_against_numpy(data, shapes, first, second):
    if data.draw(st.booleans()):
        second = first
    a = data.draw(patterns.arrays(first, shapes[0], special=False))
    b = data.draw(patterns.arrays(second, shapes[1], special=False))
    a, b = (
        np.where(np.abs(x) > 100, 2, x).astype(x.dtype) if x.dtype.kind in "fc" else x
        for x in (a, b)
    )
    with np.errstate(all="ignore"):
        expected = np.matmul(a, b)
    tolerance = TOLERANCE.get(str(expected.dtype), 0)
    found = ndx.asarray(a) @ ndx.asarray(b)
    assert_same(found, expected, rtol=tolerance, atol=tolerance)


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "rows": lambda a: np.repeat(a, 2, 0)[::2],
    "columns": lambda a: np.repeat(a, 2, 1)[:, ::2],
    "both": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "reversed rows": lambda a: a[::-1].copy()[::-1],
    "reversed columns": lambda a: a[:, ::-1].copy()[:, ::-1],
    "broadcast rows": lambda a: np.broadcast_to(a[:1], a.shape),
    "broadcast columns": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "padded": lambda a: np.pad(a, ((0, 0), (0, 3)))[:, :-3],
    "padded F": lambda a: np.asfortranarray(np.pad(a, ((0, 3), (0, 0))))[:-3],
}


@pytest.mark.costly
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (1, 4, 5), (3, 1, 5), (3, 4, 1), (40, 50, 60)]
)
def test_layouts_for_blas(sizes, dtype):
    m, n, p = sizes
    a, b = RNG.normal(size=(m, n)).astype(dtype), RNG.normal(size=(n, p)).astype(dtype)
    for first, second in itertools.product(LAYOUTS.values(), repeat=2):
        left, right = first(a), second(b)
        found = ndx.asarray(left) @ ndx.asarray(right)
        assert_same(found, left @ right, rtol=1e-3, atol=TOLERANCE[dtype])
        assert found.strides == (p * a.itemsize, a.itemsize)


@pytest.mark.parametrize("size", [3, 300])
def test_vectors(size):
    a, b = RNG.normal(size=(size, size)), RNG.normal(size=size)
    for matrix, vector in itertools.product(
        (a, a.T, a[::-1], a[:, ::-1]), (b, b[::-1], np.repeat(b, 2)[::2], a[0], a[:, 0])
    ):
        x, y = ndx.asarray(matrix), ndx.asarray(vector)
        assert_same(x @ y, matrix @ vector, rtol=1e-9, atol=1e-9)
        assert_same(y @ x, vector @ matrix, rtol=1e-9, atol=1e-9)
        assert_same(y @ y, np.asarray(vector @ vector), rtol=1e-9)


def test_the_product_with_its_own_transpose():
    """BLAS has a routine of its own for it."""
    for shape in ((30, 40), (40, 30), (1, 5), (5, 1)):
        for dtype in ("float32", "float64", "complex128"):
            a = RNG.normal(size=shape).astype(dtype)
            x = ndx.asarray(a)
            assert_same(x @ x.T, a @ a.T, rtol=1e-4, atol=1e-5)
            assert_same(x.T @ x, a.T @ a, rtol=1e-4, atol=1e-5)


def test_axes_of_no_length():
    for shapes in (((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0,), (0,)),
                   ((4, 0, 3), (3, 2)), ((0, 2, 3), (3, 2)),
                   ((2, 0), (0,))):  # fmt: skip
        for dtype in dtypes.ALL:
            a, b = (np.ones(shape, dtype) for shape in shapes)
            assert_same(ndx.asarray(a) @ ndx.asarray(b), a @ b)
            dirty = ndx.full((a @ b).shape, 7, dtype=dtype)
            assert_same(ndx.matmul(ndx.asarray(a), ndx.asarray(b), out=dirty), a @ b)


# ---- outputs -----------------------------------------------------------------


def test_out():
    a, b = RNG.normal(size=(4, 5)), RNG.normal(size=(5, 6))
    for out in (
        ndx.empty((4, 6)),
        ndx.empty((6, 4)).T,
        ndx.empty((8, 12))[::2, ::2],
        ndx.empty((4, 6))[::-1, ::-1],
        ndx.empty((1, 4, 6))[0],
    ):
        found = ndx.matmul(ndx.asarray(a), ndx.asarray(b), out=out)
        assert found is out
        assert_same(out, a @ b, rtol=1e-12, atol=1e-12)


def test_out_may_overlap():
    a = RNG.normal(size=(6, 6))
    for select in (
        lambda x: (x, x, x),
        lambda x: (x, x.T, x),
        lambda x: (x.T, x, x),
        lambda x: (x[:3, :3], x[3:, 3:], x[1:4, 1:4]),
        lambda x: (x, x[::-1], x[:, ::-1]),
        lambda x: (x, x[0], x[0]),
        lambda x: (x[:, 0], x, x[:, 0]),
        lambda x: (x[0], x, x[0]),
    ):
        b, x = a.copy(), ndx.asarray(a, copy=True)
        left, right, _ = select(b)
        expected = left @ right
        select(b)[2][...] = expected
        left, right, out = select(x)
        ndx.matmul(left, right, out=out)
        assert_same(x, b, rtol=1e-12, atol=1e-12)


def test_in_place():
    a, b = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    x = kept = ndx.asarray(a, copy=True)
    x @= ndx.asarray(b)
    assert x is kept
    assert_same(x, a @ b, rtol=1e-12, atol=1e-12)
    x @= x
    assert_same(x, (a @ b) @ (a @ b), rtol=1e-11, atol=1e-11)
    vector = ndx.ones(4)
    vector @= ndx.asarray(b)
    assert_same(vector, np.ones(4) @ b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("left", "right", "out", "error", "match"),
    [
        ((2, 3), (4, 5), None, ValueError, r"\(2, 3\) and \(4, 5\) don't match.*3.*4"),
        ((3,), (4,), None, ValueError, "the only"),
        ((2, 3), (2,), None, ValueError, "don't match"),
        ((), (2,), None, ValueError, "one axis or more"),
        ((2,), (), None, ValueError, "multiply"),
        ((2, 3, 4), (5, 4, 2), None, ValueError, "stacks"),
        ((2, 3), (3, 4), (2, 3), ValueError, r"out has shape \(2, 3\)"),
        ((2, 3), (3, 4), (1, 2, 4), ValueError, "out has shape"),
        ((3,), (3,), (1,), ValueError, "out has shape"),
    ],
)
def test_shapes_that_do_not_match(left, right, out, error, match):
    with pytest.raises(error, match=match):
        ndx.matmul(
            ndx.ones(left), ndx.ones(right), out=None if out is None else ndx.ones(out)
        )


def test_bad_operands_and_outputs():
    x = ndx.ones((2, 2))
    # Numbers are NumPy's operands, which have too few dimensions.
    numbers = [(2, ValueError), (2.0, ValueError)]
    for other, error in [*numbers, (None, TypeError), ("a", TypeError)]:
        with pytest.raises(error):
            x @ other
        with pytest.raises(error):
            other @ x
    y = ndx.asarray([[1, 2], [3, 4]])
    assert (y @ [[1, 2], [3, 4]]).tolist() == ([[1, 2], [3, 4]] @ y).tolist()
    with pytest.raises(TypeError, match="dtype"):
        ndx.matmul(x, x, out=ndx.ones((2, 2), dtype="float32"))
    with pytest.raises(TypeError, match="NDArray"):
        ndx.matmul(x, x, out=np.ones((2, 2)))
    frozen = np.ones((2, 2))
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        ndx.matmul(x, x, out=ndx.asarray(frozen))
    y = ndx.ones((2, 2), dtype="int64")
    with pytest.raises(TypeError, match="dtype"):
        y @= x


def test_special_values():
    a = np.array([[np.inf, np.nan], [0.0, -0.0]])
    with np.errstate(invalid="ignore"):
        assert_same(ndx.asarray(a) @ ndx.eye(2), a @ np.eye(2))
    big = np.full((2, 2), 1e200)
    with np.errstate(over="ignore"):
        assert_same(ndx.asarray(big) @ ndx.asarray(big), big @ big)

"""Norms, powers, ranks and inverses that are made of ndx's own operations."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx
import ndx.numpy as ndx_numpy

TYPES = ["bool", "int8", "int64", *dtypes.FLOATS, *dtypes.COMPLEX]


def arrays(shapes):
    def make(shape, dtype, layout, seed):
        a = (np.random.default_rng(seed).normal(size=shape) * 3).astype(dtype)
        if layout == "transposed":
            return np.asfortranarray(a)
        return a[..., ::-1] if layout == "reversed" else a

    layouts = st.sampled_from(["plain", "transposed", "reversed"])
    return st.builds(
        make,
        st.sampled_from(shapes),
        st.sampled_from(TYPES),
        layouts,
        st.integers(0, 9),
    )


@examples(300)
@given(
    a=arrays([(1,), (7,), (0,), (2, 3), (3, 0), (0, 3), (2, 3, 4), (200,)]),
    axis=st.none() | st.integers(-3, 2),
    keepdims=st.booleans(),
)
def test_vector_norm(a, axis, keepdims):
    x = ndx.asarray(a)
    if axis is not None and not -a.ndim <= axis < a.ndim:
        with pytest.raises(ValueError, match="out of range"):
            ndx.linalg.vector_norm(x, axis=axis)
        return
    options = {"axis": axis, "keepdims": keepdims}
    assert_same(
        ndx.linalg.vector_norm(x, **options), np.linalg.vector_norm(a, **options)
    )
    if axis is not None:
        expected = np.linalg.norm(a, axis=axis)
        for face in (np, ndx_numpy):
            assert_same(face.linalg.norm(x, axis=axis), expected)


@examples(200)
@given(
    a=arrays([(1, 1), (2, 3), (3, 0), (0, 3), (2, 3, 4), (30, 20)]),
    keepdims=st.booleans(),
)
def test_matrix_norm(a, keepdims):
    found = ndx.linalg.matrix_norm(ndx.asarray(a), keepdims=keepdims)
    assert_same(found, np.linalg.matrix_norm(a, keepdims=keepdims))


@examples(200)
@given(
    a=arrays([(1, 1), (3, 3), (2, 5), (5, 2), (2, 4, 3), (0, 2, 2)]), low=st.booleans()
)
def test_ranks_and_inverses(a, low):
    if low and a.shape[-1] > 1:
        a = a.copy()
        a[..., 0] = a[..., 1]
    x = ndx.asarray(a)
    if a.dtype == np.float16:
        with pytest.raises(TypeError, match="float16 is unsupported"):
            ndx.linalg.matrix_rank(x)
        return
    assert_same(ndx.linalg.matrix_rank(x), np.linalg.matrix_rank(a))
    if a.dtype.kind in "fc":
        single = a.dtype in (np.float32, np.complex64)
        close = (
            {"rtol": 1e-3, "atol": 1e-4} if single else {"rtol": 1e-9, "atol": 1e-11}
        )
        assert_same(ndx.linalg.pinv(x), np.linalg.pinv(a, rtol=None), **close)


def test_zeros_have_no_rank():
    x = ndx.zeros((3, 2))
    assert ndx.linalg.matrix_rank(x).item() == 0
    assert_same(ndx.linalg.pinv(x), np.zeros((2, 3)))


def test_what_is_not_a_number():
    x = ndx.asarray([[np.nan, 1.0], [1.0, np.inf]])
    assert np.isnan(float(ndx.linalg.vector_norm(x)))
    with ndx.workspace("norms"):
        assert ndx.linalg.vector_norm(x).workspace == "norms"
        stale = ndx.ones(3)
    with pytest.raises(ndx.StaleArrayError):
        ndx.linalg.vector_norm(stale)

"""Reductions of values computed block by block: conversions, squared distances."""

import math

import numpy as np
import pytest
from helpers.arrays import in_some_layout
from helpers.examples import examples
from helpers.numpy_versions import needs, needs_part
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx

REAL = ["float64", "float32", "int64", "int16", "uint8"]


@st.composite
def reduced(draw):
    """Draw an array of NumPy, an equal NDArray in any layout, and axes."""
    shape = draw(
        st.one_of(
            hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=7),
            st.sampled_from(
                [(1024,), (1025,), (5000,), (3, 2050), (2050, 3), (1, 3000), (3000, 1),
                 (700, 9), (9, 700), (4, 1, 1100), (40, 50, 30), (2, 1030, 2)]
            ),
        )
    )  # fmt: skip
    dtype = np.dtype(draw(st.sampled_from(REAL)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(0, 200, shape).astype(dtype)
    if dtype.kind == "f":
        values += rng.random(shape).astype(dtype)
    axes = draw(st.sets(st.integers(0, len(shape) - 1)) if shape else st.just(set()))
    axis = draw(st.sampled_from([None, tuple(sorted(axes))]))
    return values, draw(in_some_layout(values)), axis


@examples(150)
@given(reduced(), st.booleans(), st.sampled_from([0, 1, 0.5]))
def test_variances_are_those_of_numpy(drawn, keepdims, correction):
    values, x, axis = drawn
    np.testing.assert_array_equal(np.asarray(x), values)
    found = ndx.var(x, axis=axis, keepdims=keepdims, correction=correction)
    root = ndx.std(x, axis=axis, keepdims=keepdims, correction=correction)
    axes = range(values.ndim) if axis is None else axis
    count = math.prod(values.shape[i] for i in axes)
    if count <= correction:
        assert bool(ndx.all(ndx.isnan(found)))
        return
    expected = np.var(values, axis=axis, keepdims=keepdims, ddof=correction)
    assert found.dtype == root.dtype == expected.dtype
    assert found.shape == root.shape == expected.shape
    # The mean is rounded; its error is that of each distance.
    error = 8 * np.finfo(expected.dtype).eps * float(np.max(values, initial=1))
    off = np.abs(np.asarray(found) - expected)
    assert np.all(off <= error * np.sqrt(expected) + error**2 + error * expected)
    np.testing.assert_array_equal(np.asarray(root), np.asarray(ndx.sqrt(found)))


@needs("sums of long stretches are pairwise as a whole")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [7, 128, 129, 1024, 1025, 8193, 100_003, 1_000_003])
def test_the_variance_of_a_stretch_is_numpys_to_the_last_bit(dtype, size):
    x = np.random.default_rng(size).standard_normal(size).astype(dtype)
    assert float(ndx.var(ndx.asarray(x))) == float(np.var(x))
    twice = ndx.asarray(np.repeat(x, 2))[::-2]
    assert float(ndx.var(twice)) == float(np.var(x[::-1].copy()))


def test_special_values():
    for size in (3, 5000, 200_000):
        x = np.ones(size)
        x[size // 2] = np.nan
        assert math.isnan(ndx.std(ndx.asarray(x)))
        x[size // 2] = np.inf
        assert math.isnan(ndx.std(ndx.asarray(x)))
        assert float(ndx.std(ndx.ones(size))) == 0.0
    with pytest.raises(TypeError, match="std takes real dtypes"):
        ndx.std(ndx.ones(3, dtype=ndx.complex128))


@needs_part("loops")
def test_a_broadcast_axis_of_any_length_is_read_once():
    x = ndx.broadcast_to(ndx.asarray([[1.0], [3.0]]), (2, 2**40))
    assert float(ndx.var(x)) == 1.0
    assert ndx.var(x, axis=1).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="axis"):
        ndx.var(x, axis=2)


@needs_part("loops")
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_no_distances_are_stored(axis):
    x = ndx.ones((1000, 1000)) * 3.0
    with ndx.memory.record() as trace:
        ndx.std(x, axis=axis)
    assert trace.peak_bytes <= 100_000


@examples(100)
@given(
    reduced(),
    st.booleans(),
    st.sampled_from(["int64", "float64", "float32", "complex64"]),
)
def test_sums_in_another_dtype_are_those_of_the_converted_array(drawn, keepdims, dtype):
    values, x, axis = drawn
    dtype = np.dtype(dtype)
    if values.dtype.kind == "f" and dtype.kind == "i":
        dtype = np.dtype("float64")
    found = ndx.sum(x, axis=axis, keepdims=keepdims, dtype=getattr(ndx, dtype.name))
    expected = np.sum(values.astype(dtype), axis=axis, keepdims=keepdims)
    assert found.dtype == dtype
    assert found.shape == expected.shape
    np.testing.assert_allclose(np.asarray(found), expected, rtol=2e-5)
    if dtype.kind != "i":
        return
    np.testing.assert_array_equal(np.asarray(found), expected)
    product = ndx.prod(x, axis=axis, keepdims=keepdims, dtype=ndx.int64)
    np.testing.assert_array_equal(
        np.asarray(product), np.prod(values, axis=axis, keepdims=keepdims, dtype="i8")
    )


@needs_part("loops")
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_no_converted_copy_is_stored(axis):
    x = ndx.ones((1000, 1000), dtype=ndx.int16)
    with ndx.memory.record() as trace:
        ndx.mean(x, axis=axis)
        ndx.sum(x, axis=axis)
        ndx.std(x, axis=axis)
    assert trace.peak_bytes <= 100_000

"""Operands whose innermost axes are short, in any layout."""

import numpy as np
from helpers import dtypes
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

NAMES = ["float64", "float32", "int64", "int16", "uint8", "bool", "complex128"]


@st.composite
def operands(draw, dtype, shape):
    """Return a view of a larger array, broadcast to a shape that ends in short axes."""
    room = [n * 2 + 1 for n in shape]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    x = dtypes.cast(rng.standard_normal(room) * 9, dtype)
    order = draw(st.permutations(range(len(shape))))
    x = x.transpose(np.argsort(order)) if draw(st.booleans()) else x
    view = x[
        tuple(
            slice(0, n * step, step) if start else slice((n - 1) * step, None, -step)
            for n, step, start in (
                (n, draw(st.integers(1, 2)), draw(st.booleans())) for n in shape
            )
        )
    ]
    view = view[tuple(slice(None, n) for n in shape)]
    if draw(st.booleans()):
        axis = draw(st.integers(0, len(shape) - 1))
        view = np.broadcast_to(view.take([0], axis), view.shape)
    return view


shapes = st.one_of(
    st.tuples(st.integers(30, 1200), st.integers(1, 25)),
    st.tuples(st.integers(1, 4), st.integers(20, 500), st.integers(1, 8)),
    st.tuples(st.integers(1, 40), st.integers(1, 9), st.integers(1, 9)),
)


@examples(120)
@given(st.data(), st.sampled_from(NAMES), shapes)
def test_results_are_those_of_contiguous_operands(data, dtype, shape):
    x, y = data.draw(operands(dtype, shape)), data.draw(operands(dtype, shape))
    shape = np.broadcast_shapes(x.shape, y.shape) if x.shape == y.shape else None
    if shape is None:
        return
    a, b = ndx.asarray(x), ndx.asarray(y)
    plain = ndx.asarray(x, copy=True), ndx.asarray(np.ascontiguousarray(y), copy=True)
    for function in (ndx.add, ndx.multiply, ndx.equal, ndx.logical_or):
        assert function(a, b).tolist() == function(*plain).tolist()
    expected = x.copy()
    expected = np.add(expected, y)
    room = np.zeros((*shape, 2), expected.dtype)
    out = ndx.asarray(room)[..., 0]
    ndx.add(a, b, out=out)
    np.testing.assert_array_equal(room[..., 0], expected)
    assert not room[..., 1].any()
    out += b
    np.testing.assert_array_equal(room[..., 0], np.add(expected, y))
    if dtype != "bool":
        np.testing.assert_array_equal(np.asarray(ndx.square(a)), np.square(x))


@examples(120)
@given(st.data(), st.sampled_from(NAMES), shapes)
def test_reductions_over_short_axes(data, dtype, shape):
    x = data.draw(operands(dtype, shape))
    a = ndx.asarray(x)
    axis = data.draw(st.sampled_from([None, *range(x.ndim), (0, -1), (-2, -1)]))
    whole = x.dtype.kind not in "fc"
    for name in ["sum"] + ["prod"] * whole + ["max", "min"] * (dtype[0] != "c"):
        found = np.asarray(getattr(ndx, name)(a, axis=axis))
        expected = getattr(np, name)(x, axis=axis)
        if name == "sum" and not whole:
            # Rows that are added one after the other, as NumPy adds them, too,
            # have an error of up to half an eps for each.
            error = np.abs(found - np.sum(x, axis=axis, dtype=np.result_type(x, "g")))
            rows = x.size // max(1, np.size(expected))
            bound = max(8, rows) * np.finfo(x.dtype).eps * np.sum(np.abs(x), axis=axis)
            assert np.all(error <= bound)
        else:
            np.testing.assert_array_equal(found, expected)

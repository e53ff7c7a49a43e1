"""Stencils: rows at one distance are computed with the elements between them."""

import numpy as np
import pytest
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx


def shifted(draw, ndim, widths):
    """Draw a view of an array, without as many elements at its ends as `widths` say."""
    index = []
    for axis in range(ndim):
        start = draw(st.integers(0, widths[axis]))
        stop = start - widths[axis]
        index.append(slice(start, stop or None))
    return tuple(index)


@examples(150)
@given(st.data())
def test_stencils_of_any_shape_are_those_of_the_function(data):
    ndim = data.draw(st.integers(1, 4))
    widths = data.draw(st.tuples(*[st.integers(0, 2)] * ndim))
    shape = [
        width
        + data.draw(st.sampled_from([1, 2, 3, 7, 16, 47, 48, 49, 130][: 9 - ndim]))
        for width in widths
    ]
    parts = [
        shifted(data.draw, ndim, widths) for _ in range(data.draw(st.integers(2, 5)))
    ]
    dtype = data.draw(st.sampled_from(["float64", "float32", "int64", "int16"]))
    ends = data.draw(st.sampled_from(["array", "sum", "max", "store", "both", "row"]))

    def stencil(xp, u, v):
        total = u[parts[0]] * 3 - v[parts[1]]
        for part in parts[2:]:
            total = total + u[part]
        if ends == "sum":
            return xp.sum(total)
        if ends == "max":
            return xp.max(total), total
        if ends == "row":
            return xp.sum(total, axis=0)
        if ends in ("store", "both"):
            # What lies between the rows of the target stays.
            v[parts[0]] = total
        if ends == "both":
            return xp.max(u[parts[1]] + v[parts[0]])
        return total

    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    u, v = (rng.integers(-50, 50, shape).astype(dtype) for _ in range(2))
    a, b = ndx.asarray(u.copy()), ndx.asarray(v.copy())
    expected = stencil(np, u, v)
    found = ndx.fuse(stencil)(ndx, a, b)
    np.testing.assert_array_equal(np.asarray(b), v)
    if type(expected) is not tuple:
        expected, found = (expected,), (found,)
    for one, other in zip(expected, found, strict=True):
        if one is not None:
            np.testing.assert_array_equal(np.asarray(other), one)


@pytest.mark.parametrize("shape", [(40, 30), (9, 8, 50), (600, 130)])
def test_what_lies_between_the_rows_does_not_count(shape):
    u = np.ones(shape)
    u[..., 0] = u[..., -1] = np.nan
    inner = (slice(1, -1),) * len(shape)
    up = (slice(2, None), *inner[1:])

    @ndx.fuse
    def both(u):
        total = u[inner] + u[up]
        return total, ndx.sum(total), ndx.max(total)

    total, added, most = both(ndx.asarray(u))
    assert not np.any(np.isnan(np.asarray(total)))
    assert float(added) == 2.0 * total.size
    assert float(most) == 2.0

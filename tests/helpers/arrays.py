"""Hypothesis strategies: arrays of all dtypes, shapes and memory layouts."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import ndx
from helpers import dtypes


def numpy_arrays(names=dtypes.ALL, *, min_dims=0, max_dims=4, min_side=0, finite=False):
    """Return a strategy of NumPy arrays of small shapes."""
    shapes = hnp.array_shapes(
        min_dims=min_dims, max_dims=max_dims, min_side=min_side, max_side=4
    )
    return st.sampled_from(names).flatmap(
        lambda name: hnp.arrays(name, shapes, elements=_elements(name, finite))
    )


def _elements(name, finite):
    if name in dtypes.INTEGERS and finite:
        return st.integers(0, 5)
    if name in dtypes.FLOATS + dtypes.COMPLEX and finite:
        return st.integers(-8, 8).map(float)
    return hnp.from_dtype(np.dtype(name))


@st.composite
def pairs(draw, *args, **kwargs):
    """Draw (a NumPy array, an NDArray of the same values in some memory layout)."""
    array = draw(numpy_arrays(*args, **kwargs))
    return array, draw(in_some_layout(array))


@st.composite
def in_some_layout(draw, array):
    """Draw an NDArray of an array's values: permuted, stepped or reversed in memory."""
    order = draw(st.permutations(range(array.ndim)))
    steps = [draw(st.sampled_from([1, 2, -1, -2])) for _ in order]
    room = np.zeros(
        [length * abs(step) for length, step in _sides(array, order, steps)]
    )
    room = room.astype(array.dtype)
    key = tuple(slice(None, None, step) for step in steps)
    room[key] = array.transpose(order)
    view = ndx.asarray(room, copy=True)[(*key, ...)]
    inverse = [order.index(axis) for axis in range(array.ndim)]
    return ndx.permute_dims(view, inverse)


def _sides(array, order, steps):
    return [(array.shape[axis], step) for axis, step in zip(order, steps, strict=True)]


def axes(ndim):
    """Return a strategy of axes: None, one, or some."""
    if not ndim:
        return st.none()
    one = st.integers(-ndim, ndim - 1)
    some = st.lists(one, unique_by=lambda axis: axis % ndim, max_size=ndim).map(tuple)
    return st.none() | one | some

"""Manipulation, indexing and utility functions."""

import numpy as np
from helpers import patterns
from hypothesis import strategies as st

from differential.draws import (
    ALL,
    NO_AXES,
    alone,
    arrays,
    axes,
    axis_of_none,
    chosen,
    scarcely,
    with_axis,
)  # fmt: skip
from differential.engine import Row, rows


@st.composite
def sequences(draw, stacked):
    """Draw arrays to join: of one shape, but for the axis."""
    shape = draw(patterns.shapes())
    count = draw(st.integers(1, 3))
    axis = draw(axes(len(shape) + stacked, one=True, none=not stacked))
    found = []
    for _ in range(count):
        lengths = list(shape)
        if not stacked and axis is not None and -len(shape) <= axis < len(shape):
            lengths[axis] = draw(st.integers(0, 3))
        if draw(scarcely):
            lengths.append(2)
        found.append(draw(arrays(ALL, tuple(lengths))))
    return (found if draw(st.booleans()) else tuple(found),), {"axis": axis}


@st.composite
def expanded(draw):
    x = draw(arrays())
    count = draw(st.integers(0, 2))
    ndim = x.ndim + max(count, 1)
    if not count:
        return (x,), {"axis": draw(axes(ndim, one=True, none=False))}
    axis = draw(st.lists(st.integers(-ndim, ndim - 1), min_size=count, max_size=count))
    return (x,), {"axis": tuple(axis)}


@st.composite
def squeezed(draw):
    x = draw(arrays(ALL, draw(patterns.shapes(max_side=2))))
    return (x,), {"axis": draw(axes(x.ndim, none=False))}


@st.composite
def moved(draw):
    x = draw(arrays(min_dims=1))
    source = draw(axes(x.ndim, none=False))
    if isinstance(source, int):
        return (x, source, draw(axes(x.ndim, one=True, none=False))), {}
    order = draw(st.permutations(range(x.ndim)))
    return (x, source, tuple(order[: len(source)])), {}


@st.composite
def permuted(draw):
    x = draw(arrays())
    order = list(draw(st.permutations(range(x.ndim))))
    if order and draw(scarcely):
        order[0] = order[-1]
    return (x, tuple(axis - x.ndim * draw(st.booleans()) for axis in order)), {}


@st.composite
def repeated(draw):
    x = draw(arrays())
    axis = draw(axes(x.ndim, one=True))
    known = axis is not None and -x.ndim <= axis < x.ndim
    length = x.shape[axis] if known else x.size
    count = draw(st.integers(-draw(scarcely), 3))
    if draw(st.booleans()):
        counts = patterns.foreign("int64", (length,), values=np.arange(4))
        count = draw(counts)
    return (x, count), {"axis": axis}


@st.composite
def reshaped(draw):
    x = draw(arrays())
    axes_ = draw(st.permutations(x.shape))
    if draw(scarcely):
        axes_.append(3)
    if axes_ and draw(st.booleans()):
        axes_[draw(st.integers(0, len(axes_) - 1))] = -1
    shape = -1 if draw(st.integers(0, 4)) == 0 else tuple(axes_)
    return (x, shape), draw(chosen(copy=st.sampled_from([None, True])))


@st.composite
def rolled(draw):
    x = draw(arrays())
    axis = draw(axes(x.ndim))
    shift = draw(st.integers(-7, 7))
    if isinstance(axis, tuple) and draw(st.booleans()):
        shift = tuple(draw(st.integers(-7, 7)) for _ in axis)
    return (x, shift), {"axis": axis}


@st.composite
def tiled(draw):
    counts = st.lists(st.integers(-draw(scarcely), 3), max_size=4).map(tuple)
    return (draw(arrays(max_side=3)), draw(counts)), {}


@st.composite
def taken(draw):
    x = draw(arrays(min_dims=1))
    axis = draw(axes(x.ndim, one=True, none=x.ndim == 1))
    which = 0 if axis is None else axis
    length = x.shape[which] if -x.ndim <= which < x.ndim else 1
    bound = max(length + draw(scarcely), 1)
    index = np.arange(-length, bound) if length else np.arange(1)
    shape = (draw(st.integers(0, 5)),)
    indices = draw(patterns.foreign("int64", shape, values=index))
    return (x, indices), {"axis": axis}


@st.composite
def taken_along(draw):
    x = draw(arrays(min_dims=1))
    axis = draw(axes(x.ndim, one=True, none=False))
    which = axis if -x.ndim <= axis < x.ndim else 0
    shape = list(x.shape)
    length = shape[which]
    shape[which] = draw(st.integers(0, 4)) if length else 0
    for other in range(x.ndim):
        if other != which % x.ndim and draw(scarcely):
            shape[other] = 1
    index = np.arange(-length, length + draw(scarcely)) if length else np.arange(1)
    indices = draw(patterns.foreign("int64", tuple(shape), values=index))
    return (x, indices), {"axis": axis}


@st.composite
def differences(draw):
    x = draw(arrays("iufc", min_dims=1, which="some"))
    axis = draw(axes(x.ndim, one=True, none=False))
    kwargs = draw(chosen(n=st.integers(-draw(scarcely), 5)))
    for name in ("prepend", "append"):
        if -x.ndim <= axis < x.ndim and draw(st.integers(0, 3)) == 0:
            shape = list(x.shape)
            shape[axis] = draw(st.integers(0, 2))
            kwargs[name] = draw(arrays(x.dtype.kind, tuple(shape)))
    return (x,), kwargs | {"axis": axis}


def no_axis(x, n=1, axis=-1, **kwargs):
    return n == 0 and not -x.ndim <= axis < x.ndim


TABLE = rows("matrix_transpose", alone()) | {
    "concat": Row(sequences(stacked=False)),
    "stack": Row(sequences(stacked=True)),
    "expand_dims": Row(expanded()),
    "flip": Row(with_axis()),
    "moveaxis": Row(moved()),
    "permute_dims": Row(permuted()),
    "repeat": Row(
        repeated(),
        refuses=lambda x, count, **kwargs: (
            axis_of_none(x, **kwargs) or (x.size == 0 and np.any(np.less(count, 0)))
        ),
        note="Of arrays without axes or elements, NumPy looks at no count.",
    ),
    "reshape": Row(reshaped()),
    "roll": Row(rolled()),
    "squeeze": Row(squeezed(), refuses=axis_of_none, note=NO_AXES),
    "tile": Row(
        tiled(),
        refuses=lambda x, counts: any(n < 0 for n in counts),
        note="NumPy takes negative numbers for 0, once in a while",
    ),
    "unstack": Row(with_axis(one=True, none=False)),
    "take": Row(taken()),
    "take_along_axis": Row(taken_along()),
    "diff": Row(
        differences(), refuses=no_axis, note="NumPy does not look where n is 0"
    ),
}

"""Hypothesis strategies: NumPy arrays of any layout in memory, with telling values.

What they draw is often a corner: no axes, axes of length 0 and 1, single elements, the
extremes of a dtype, elements that several places of an array share. In `large_shapes`
all shapes are ones of which operations on files are passes; in `empty_shapes` they have
axes of length 0.
"""

import contextlib
import functools
import itertools

import numpy as np
from hypothesis import strategies as st

# Tests also meet the borders of each dtype.
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.75, -7.5, 1e30, 1e-30]
SPECIAL = [np.inf, -np.inf, np.nan]


def composite(function):
    """Return a function that makes a composite strategy once for the same arguments.

    A strategy that is new in each draw costs more than what it draws: it is validated,
    and labelled. The arguments have to be hashable.
    """
    return functools.cache(st.composite(function))


@functools.cache
def pool(dtype, special=True):
    """Return telling values of a dtype."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = [info.min, info.min + 1, 0, 1, 2, 3, 5, 7, 100, info.max - 1, info.max]
        if dtype.kind == "i":
            values += [-1, -2, -7]
        return np.array(values, dtype=dtype)
    info = np.finfo(dtype)
    floats = [min(value, float(info.max)) for value in FLOATS]
    extremes = [float(info.max), float(info.smallest_subnormal), -float(info.tiny)]
    if dtype.kind == "f":
        values = floats + extremes + SPECIAL * special
        return np.array(values, dtype=dtype)
    values = FLOATS + SPECIAL * special
    return np.array([complex(a, b) for a in values for b in values], dtype=dtype)


# Of all numbers of axes: long ones, single ones, none, and no element at all.
LARGE_SHAPES = [
    (40000,), (32768,), (1, 40000), (40000, 1), (200, 200), (3, 20000), (0, 40000),
    (1, 200, 200), (200, 1, 200), (40, 33, 30), (200, 200, 1), (7,), (),
]  # fmt: skip
# An axis of length 0 first, last, in the middle, several of them; and no axes at all.
EMPTY_SHAPES = [
    (0,), (0, 0), (0, 1), (1, 0), (0, 3), (3, 0), (0, 2, 3), (2, 0, 3), (2, 3, 0),
    (0, 2, 0), (1, 0, 1), (0, 0, 0), (),
]  # fmt: skip
_shapes = [None]


@contextlib.contextmanager
def _only(found):
    _shapes.append(found)
    try:
        yield
    finally:
        _shapes.pop()


def large_shapes():
    """Let all shapes that are drawn be ones of `LARGE_SHAPES`."""
    return _only(LARGE_SHAPES)


def empty_shapes():
    """Let all shapes that are drawn be ones of `EMPTY_SHAPES`, where any may be."""
    return _only(EMPTY_SHAPES)


def least_side():
    """Return the length of the shortest axes that tests of empty arrays draw, or 1."""
    return 0 if _shapes[-1] is EMPTY_SHAPES else 1


# Few draws of long lists: each draw of Hypothesis costs more than most calls of ndx.
@functools.cache
def _sides(ndim, sides):
    """Return a strategy of all shapes of `ndim` axes with these sides."""
    return st.sampled_from(list(itertools.product(sides, repeat=ndim)))


@functools.cache
def _kinds(min_dims, max_dims):
    """Return a strategy of numbers of axes, and of whether most are of one element."""
    return st.sampled_from(
        [
            (n, single)
            for single in (False, True, False)
            for n in range(min_dims, max_dims + 1)
        ]
    )


@composite
def shapes(draw, max_dims=3, max_side=4, min_dims=0, min_side=0):
    """Draw shapes, of which many have single elements, or none."""
    if _shapes[-1] is not None:
        fits = [
            shape
            for shape in _shapes[-1]
            if min_dims <= len(shape) <= max_dims and min(shape, default=1) >= min_side
        ]
        if fits:
            return draw(st.sampled_from(fits))
    ndim, single = draw(_kinds(min_dims, max_dims))
    sides = tuple(range(min_side, max_side + 1))
    if single:
        sides = (
            tuple(side for side in (1, 1, 0) if min_side <= side <= max_side)
            + sides[-1:]
        )
    return draw(_sides(ndim, sides))


@functools.cache
def _stretches(ndim, count):
    """Return a strategy of the leading axes each shape lacks, and which are one."""
    one = [
        (first, single)
        for first in range(ndim + 1)
        for single in itertools.product([False, True], repeat=ndim - first)
    ]
    return st.tuples(*[st.sampled_from(one)] * count)


@composite
def broadcastable(draw, count=2, max_dims=3):
    """Draw shapes that broadcast together."""
    full = draw(shapes(max_dims=max_dims))
    return [
        tuple(
            1 if one else side for one, side in zip(single, full[first:], strict=True)
        )
        for first, single in draw(_stretches(len(full), count))
    ]


KINDS = st.sampled_from(["plain", "laid out"] * 7 + ["plain", "windows"])


@functools.cache
def _layouts(ndim, broadcast):
    """Return a strategy of the axes' order in memory, and of their steps."""
    orders = list(itertools.permutations(range(ndim)))
    steps = itertools.product([1, 2, -1, -2] + [0] * broadcast, repeat=ndim)
    return st.tuples(st.sampled_from(orders), st.sampled_from(list(steps)))


SEEDS = st.integers(0, 2**32)


def draw_array(draw, dtype, shape, special=True, broadcast=True, values=None):
    """Draw an array whose axes are permuted, skipped over, reversed or broadcast.

    Or, as broadcast ones, it is not writable, and its places share elements: windows of
    a line. Its elements are chosen from `values`, or else from the telling ones of the
    dtype.
    """
    ndim = len(shape)
    kind = draw(KINDS) if ndim else "plain"
    order, chosen = range(ndim), [1] * ndim
    if kind == "laid out" or (kind == "windows" and not broadcast):
        order, chosen = draw(_layouts(ndim, broadcast))
    rng = np.random.default_rng(draw(SEEDS))
    values = pool(dtype, special) if values is None else values
    if not ndim:
        return np.array(rng.choice(values))
    if kind == "windows" and broadcast:
        line = rng.choice(values, size=sum(shape) + 1)
        return np.lib.stride_tricks.as_strided(
            line, shape, line.strides * ndim, writeable=False
        )
    sides = [
        (1 if step == 0 else side * abs(step))
        for side, step in zip(shape, chosen, strict=True)
    ]
    base = rng.choice(values, size=[sides[axis] for axis in order])
    x = base.transpose(np.argsort(order))
    x = x[tuple(slice(None, None, step or None) for step in chosen)]
    # A broadcast axis keeps its stride of 0, and is writable no more.
    x = np.broadcast_to(x, shape) if 0 in chosen else x
    assert x.shape == tuple(shape)
    assert x.dtype == dtype
    return x


arrays = st.composite(draw_array)

FOREIGN = st.sampled_from(["as it is", "as it is", "unaligned", "swapped"])


def draw_foreign(draw, dtype, shape, **kwargs):
    """Draw an array as of `arrays`, or one that is not aligned, or byte-swapped."""
    x = draw_array(draw, dtype, shape, **kwargs)
    kind = draw(FOREIGN)
    if kind == "swapped":
        return x.astype(x.dtype.newbyteorder())
    if kind == "unaligned":
        room = np.zeros(x.nbytes + 1, "uint8")
        target = np.ndarray(x.shape, x.dtype, buffer=room, offset=1)
        target[...] = x
        return target
    return x


foreign = st.composite(draw_foreign)

"""Hypothesis strategies: NumPy arrays of any layout in memory, with telling values.

What they draw is often a corner: no axes, axes of length 0 and 1, single elements, the
extremes of a dtype, elements that several places of an array share. In `large_shapes`
all shapes are ones of which operations on files are passes.
"""

import contextlib

import numpy as np
from hypothesis import strategies as st

# Tests also meet the borders of each dtype.
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.75, -7.5, 1e30, 1e-30]
SPECIAL = [np.inf, -np.inf, np.nan]


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
    extremes = [float(info.max), float(info.smallest_subnormal), -float(info.tiny)]
    if dtype.kind == "f":
        values = FLOATS + extremes + SPECIAL * special
        return np.array(values, dtype=dtype)
    values = FLOATS + SPECIAL * special
    return np.array([complex(a, b) for a in values for b in values], dtype=dtype)


# Of all numbers of axes: long ones, single ones, none, and no element at all.
LARGE_SHAPES = [
    (40000,), (32768,), (1, 40000), (40000, 1), (200, 200), (3, 20000), (0, 40000),
    (1, 200, 200), (200, 1, 200), (40, 33, 30), (200, 200, 1), (7,), (),
]  # fmt: skip
_shapes = [None]


@contextlib.contextmanager
def large_shapes():
    """Let all shapes that are drawn be ones of `LARGE_SHAPES`."""
    _shapes.append(LARGE_SHAPES)
    try:
        yield
    finally:
        _shapes.pop()


@st.composite
def shapes(draw, max_dims=3, max_side=4, min_dims=0, min_side=0):
    if _shapes[-1] is not None:
        fits = [
            shape
            for shape in _shapes[-1]
            if min_dims <= len(shape) <= max_dims and min(shape, default=1) >= min_side
        ]
        return draw(st.sampled_from(fits))
    ndim = draw(st.integers(min_dims, max_dims))
    sides = list(range(min_side, max_side + 1))
    if draw(st.integers(0, 2)) == 0:
        # Mostly of single elements, or of none.
        sides = [side for side in (1, 1, 0) if min_side <= side <= max_side] + sides[
            -1:
        ]
    return tuple(draw(st.sampled_from(sides)) for _ in range(ndim))


@st.composite
def broadcastable(draw, count=2, max_dims=3):
    """Draw shapes that broadcast together."""
    full = draw(shapes(max_dims=max_dims))
    found = []
    for _ in range(count):
        kept = full[draw(st.integers(0, len(full))) :]
        found.append(tuple(1 if draw(st.booleans()) else side for side in kept))
    return found


@st.composite
def arrays(draw, dtype, shape, special=True, broadcast=True, values=None):
    """Draw an array whose axes are permuted, skipped over, reversed or broadcast.

    Or, as broadcast ones, it is not writable, and its places share elements: windows of
    a line. Its elements are chosen from `values`, or else from the telling ones of the
    dtype.
    """
    steps = [1, 2, -1, -2] + [0] * broadcast
    ndim = len(shape)
    plain = draw(st.booleans())
    if plain:
        order, chosen = list(range(ndim)), [1] * ndim
    else:
        order = draw(st.permutations(range(ndim)))
        chosen = [draw(st.sampled_from(steps)) for _ in range(ndim)]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sides = [
        (1 if step == 0 else side * abs(step))
        for side, step in zip(shape, chosen, strict=True)
    ]
    values = pool(dtype, special) if values is None else values
    if not ndim:
        return np.array(rng.choice(values))
    if not plain and broadcast and draw(st.integers(0, 7)) == 0:
        line = rng.choice(values, size=sum(shape) + 1)
        return np.lib.stride_tricks.as_strided(
            line, shape, line.strides * ndim, writeable=False
        )
    base = rng.choice(values, size=[sides[axis] for axis in order])
    x = base.transpose(np.argsort(order))
    x = x[tuple(slice(None, None, step or None) for step in chosen)]
    # A broadcast axis keeps its stride of 0, and is writable no more.
    x = np.broadcast_to(x, shape) if 0 in chosen else x
    assert x.shape == tuple(shape)
    assert x.dtype == dtype
    return x


@st.composite
def foreign(draw, dtype, shape, **kwargs):
    """Draw an array as of `arrays`, or one that is not aligned, or byte-swapped."""
    x = draw(arrays(dtype, shape, **kwargs))
    kind = draw(st.sampled_from(["as it is", "as it is", "unaligned", "swapped"]))
    if kind == "swapped":
        return x.astype(x.dtype.newbyteorder())
    if kind == "unaligned":
        room = np.zeros(x.nbytes + 1, "uint8")
        target = np.ndarray(x.shape, x.dtype, buffer=room, offset=1)
        target[...] = x
        return target
    return x

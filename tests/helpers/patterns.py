"""Hypothesis strategies: NumPy arrays of any layout in memory, with telling values."""

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
    values = FLOATS + SPECIAL * special
    if dtype.kind == "f":
        return np.array(values, dtype=dtype)
    return np.array([complex(a, b) for a in values for b in values], dtype=dtype)


@st.composite
def shapes(draw, max_dims=3, max_side=4, min_dims=0, min_side=0):
    ndim = draw(st.integers(min_dims, max_dims))
    sides = st.integers(min_side, max_side)
    return tuple(draw(sides) for _ in range(ndim))


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

    Its elements are chosen from `values`, or else from the telling ones of the dtype.
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

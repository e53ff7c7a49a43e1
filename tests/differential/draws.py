"""Strategies of arguments: arrays in any layout, axes, shapes, scalars; some wrong."""

import functools

import numpy as np
from helpers import dtypes, patterns
from helpers.patterns import composite
from hypothesis import strategies as st

BY_KIND = {
    "b": dtypes.BOOL,
    "i": dtypes.SIGNED,
    "u": dtypes.UNSIGNED,
    "f": dtypes.FLOATS,
    "c": dtypes.COMPLEX,
}
ALL = "biufc"
# Sums and products of a few of them are exact in every dtype that has them.
SMALL = {
    "b": [False, True],
    "i": [-3, -2, -1, 0, 1, 2, 3, 5],
    "u": [0, 1, 2, 3, 5],
    "f": [-2.0, -1.0, -0.5, 0.0, 0.25, 1.0, 1.5, 3.0],
    "c": [0, 1, -2, 0.5j, 1 + 1j, -1 + 2j, 3 - 0.5j],
}
# Products of many of them stay in range in every order. Otherwise it depends on the
# order, and so on the layout, whether a zero meets an infinity.
NOT_ABOVE_ONE = SMALL | {
    "f": [-1.0, -0.5, 0.0, 0.25, 0.75, 1.0],
    "c": [0, 1, -1j, 0.5j, 0.5 + 0.5j, -0.25 + 0.5j],
}
scarcely = st.integers(0, 11).map(lambda number: number == 11)


@functools.cache
def names(kinds):
    """Return a strategy of dtypes' names of some kinds."""
    return st.sampled_from([name for kind in kinds for name in BY_KIND[kind]])


@functools.cache
def small(dtype):
    dtype = np.dtype(dtype)
    return np.array(SMALL[dtype.kind], dtype=dtype)


def values(dtype, which):
    """Return the values that elements are chosen from.

    That is all, some (finite), small ones, or those that are not above one.
    """
    if which == "small":
        return small(dtype)
    if which == "not above one":
        return np.array(NOT_ABOVE_ONE[np.dtype(dtype).kind], dtype=dtype)
    return patterns.pool(dtype, special=which == "all")


@composite
def arrays(draw, kinds=ALL, shape=None, which="all", **limits):
    """Draw an array of a dtype of some kinds, in any layout."""
    name = draw(names(kinds))
    if shape is None:
        shape = draw(patterns.shapes(**limits))
    return patterns.draw_foreign(draw, name, shape, values=values(name, which))


@functools.cache
def scalars(kinds=ALL):
    """Return a strategy of Python scalars of some kinds, of small values."""
    found = [item for kind in kinds for item in SMALL[kind if kind != "i" else "u"]]
    return st.sampled_from(found)


@functools.cache
def _several_axes(ndim):
    """Return a strategy of lists of axes, each of them once."""
    item = st.integers(-ndim, ndim - 1)
    return st.lists(item, unique_by=lambda axis: axis % ndim, max_size=ndim)


@composite
def axes(draw, ndim, *, one=False, none=True):
    """Draw an axis argument; once in a while one that is out of range."""
    wrong = draw(scarcely) or not ndim
    if none and draw(st.integers(0, 2)) == 0:
        return None
    if wrong:
        return draw(st.sampled_from((ndim, -ndim - 1)))
    item = st.integers(-ndim, ndim - 1)
    if one or draw(st.booleans()):
        return draw(item)
    chosen = draw(_several_axes(ndim))
    if chosen and draw(scarcely):
        chosen.append(chosen[0])
    return tuple(chosen)


@st.composite
def chosen(draw, **options):
    """Draw keywords: each from a strategy, or left out."""
    return {
        name: draw(strategy)
        for name, strategy in options.items()
        if draw(st.booleans())
    }


@composite
def pair_shapes(draw, count=2):
    """Draw shapes that broadcast; once in a while ones that (mostly) don't."""
    found = draw(patterns.broadcastable(count))
    if draw(scarcely):
        found[-1] = (*found[-1][:-1], 5)
    return found


FITS = "a Python integer that the array's dtype has not raises OverflowError"


def does_not_fit(*args):
    """Whether a Python integer does not fit the dtype of the array next to it."""
    first, second = args[-2:]
    if isinstance(second, np.ndarray):
        first, second = second, first
    if isinstance(second, np.ndarray) or first.dtype.kind not in "iu":
        return False
    info = np.iinfo(first.dtype)
    whole = isinstance(second, int) and not isinstance(second, bool)
    return whole and not info.min <= second <= info.max


NO_AXES = "NumPy takes axes 0 and -1 of arrays that have none; they are out of range"


def axis_of_none(x, *args, axis=None, **kwargs):
    """Whether an axis is named of an array that has none."""
    return x.ndim == 0 and axis is not None and axis != ()


@st.composite
def with_axis(draw, kinds=ALL, which="all", one=False, none=True, name="axis",
              options=None, **limits):  # fmt: skip
    """Draw a call of an array, an axis and further keywords."""
    x = draw(arrays(kinds, which=which, **limits))
    kwargs = draw(chosen(**(options or {})))
    if draw(st.integers(0, 4)) or not none:
        kwargs[name] = draw(axes(x.ndim, one=one, none=none))
    return (x,), kwargs


@st.composite
def alone(draw, kinds=ALL, which="all", **limits):
    """Draw a call of one array and nothing else."""
    return (draw(arrays(kinds, which=which, **limits)),), {}


@st.composite
def pairs(draw, kinds=ALL, which="all", scalar=True):
    """Draw a call of two arrays that broadcast, or of one and a Python scalar."""
    first, second = draw(pair_shapes())
    name = draw(names(kinds))
    x = patterns.draw_foreign(draw, name, first, values=values(name, which))
    if scalar and draw(st.integers(0, 3)) == 0:
        pair = [x, draw(scalars(kinds.replace("u", "")))]
        if draw(st.booleans()):
            pair.reverse()
        return tuple(pair), {}
    other = name if draw(st.booleans()) else draw(names(kinds))
    y = patterns.draw_foreign(draw, other, second, values=values(other, which))
    return (x, y), {}

"""`roll` of small arrays, against NumPy's; what `roll` and `tile` return."""

import numpy as np
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

SHAPES = [(1,), (5,), (0,), (2, 3), (1, 4), (3, 0), (2, 3, 4), (1, 1), ()]


def arrays():
    def make(shape, dtype, transposed):
        a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        return a.T if transposed else a

    dtypes = st.sampled_from(["bool", "int16", "float32", "float64", "complex128"])
    return st.builds(make, st.sampled_from(SHAPES), dtypes, st.booleans())


@examples(300)
@given(a=arrays(), data=st.data())
def test_roll(a, data):
    shifts = st.integers(-9, 9) | st.just(10**30)
    shift, axis = data.draw(shifts), None
    if a.ndim and data.draw(st.booleans()):
        axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
        if data.draw(st.booleans()):
            others = data.draw(st.lists(st.integers(-a.ndim, a.ndim - 1), max_size=2))
            axis = (axis, *others)
            if data.draw(st.booleans()):
                shift = tuple(data.draw(shifts) for _ in axis)
    length = 27720  # NumPy takes no larger shifts
    wanted = tuple(n % length for n in shift) if axis and type(shift) is tuple else (
        shift % length
    )  # fmt: skip
    x = ndx.asarray(a)
    assert_same(ndx.roll(x, shift, axis=axis), np.roll(a, wanted, axis=axis))
    assert_same(x, a)


def test_results_are_copies():
    x = ndx.arange(4)
    for y in (
        ndx.roll(x, 0),
        ndx.roll(x, 4, axis=0),
        ndx.roll(x, (0, 4), axis=(0, 0)),
        ndx.tile(x, (1,)),
        ndx.tile(x, ()),
    ):
        y[0] = 7
        assert x.tolist() == [0, 1, 2, 3]


def test_many_axes_and_copies():
    x = ndx.arange(2)
    assert ndx.tile(x, (1,) * 63 + (2,)).shape == (1,) * 63 + (4,)
    assert_same(ndx.tile(x, (40_000,)), np.tile(np.arange(2), 40_000))
    assert ndx.tile(x, (0,)).shape == (0,)

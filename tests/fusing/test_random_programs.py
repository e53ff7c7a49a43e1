"""Random functions compute the same with `ndx.fuse` as without, to the bit."""

import numpy as np
from differential.layouts import LAYOUTS
from fusing.programs import DTYPES, assert_same, programs
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

SHAPES = [(), (0,), (1,), (5,), (7,), (3, 4), (4, 3), (4, 4), (1, 4), (4, 1), (0, 3),
          (2, 3, 4), (6, 5, 4), (3, 1, 4), (70, 60), (5000,), (40000,)]  # fmt: skip


@st.composite
def arguments(draw):
    """Return functions that make equal arguments, again and again."""
    base = draw(st.sampled_from(SHAPES))
    made = []
    for _ in range(draw(st.integers(1, 3))):
        shape = draw(st.sampled_from([base, base, base, base[1:], SHAPES[4]]))
        dtype = np.dtype(draw(st.sampled_from(DTYPES)))
        rng = np.random.default_rng(draw(st.integers(0, 3)))
        values = np.asarray(rng.integers(-3, 4, shape) / 2).astype(dtype)
        made.append((values, draw(st.sampled_from(LAYOUTS))))
    repeated = draw(st.booleans())

    def make(factor):
        arrays = [layout(values) for values, layout in made]
        return [*arrays, *arrays[:repeated], factor]

    return make


@examples(150, deadline=None)
@given(programs, arguments(), st.sampled_from([1.0, 0.25, -0.0]))
def test_a_fused_function_computes_the_same(program, make, factor):
    assert_same(program, make, (factor, factor, 3.5))

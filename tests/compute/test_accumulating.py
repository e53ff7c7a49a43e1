"""Cumulative results, to the last bit (`_compute.accumulating`)."""

import numpy as np
import pytest
from helpers import dtypes
from helpers.compare import assert_same
from helpers.examples import examples
from hypothesis import given
from hypothesis import strategies as st

import ndx

NUMBERS = [*dtypes.INTEGERS, "float32", "float64", "complex64", "complex128"]


@pytest.mark.parametrize("name", ["sum", "prod"])
@pytest.mark.parametrize("dtype", NUMBERS)
@examples(30)
@given(
    size=st.integers(0, 70),
    step=st.sampled_from([1, 2, -1, -3, 0]),
    first=st.booleans(),
)
def test_as_numpys(name, dtype, size, step, first):
    rng = np.random.default_rng(size)
    with np.errstate(all="ignore"):
        a = (rng.normal(size=max(1, 3 * size)) * 3).astype(dtype)
        if step:
            a = a[::step][:size]
        else:
            a = np.broadcast_to(a[:1], (size,))
        ours = getattr(ndx, f"cumulative_{name}")
        numpys = getattr(np, f"cumulative_{name}")
        assert_same(
            ours(ndx.asarray(a), include_initial=first),
            numpys(a, include_initial=first),
        )


def test_of_a_stale_array():
    with ndx.workspace("accumulating"):
        x = ndx.ones(5)
    with pytest.raises(ndx.StaleArrayError):
        ndx.cumulative_sum(x)

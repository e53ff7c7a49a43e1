"""Cumulative results, to the last bit (`_compute.accumulating`)."""

import numpy as np
import pytest
from helpers import dtypes, patterns
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


@pytest.mark.parametrize("name", ["sum", "prod"])
@examples(100)
@given(st.sampled_from(NUMBERS), st.booleans(), st.data())
def test_lines_of_any_layout(name, dtype, first, data):
    lengths = st.sampled_from([0, 1, 2, 3, 4, 5, 15, 16, 17, 33])
    shape = data.draw(st.lists(lengths, min_size=1, max_size=4).map(tuple))
    a = data.draw(patterns.arrays(dtype, shape))
    axis = data.draw(st.integers(-a.ndim, a.ndim - 1))
    with np.errstate(all="ignore"):
        wanted = getattr(np, f"cumulative_{name}")(a, axis=axis, include_initial=first)
        x = ndx.asarray(a, copy=False)
        ours = getattr(ndx, f"cumulative_{name}")
        assert_same(ours(x, axis=axis, include_initial=first), wanted)


LARGE = [
    ((200_000,), 0), ((300, 300), 0), ((300, 300), 1), ((70_000, 3), 0),
    ((3, 70_000), 0), ((40, 50, 60), 1), ((100_000, 1), 0), ((1, 100_000), 0),
]  # fmt: skip


@pytest.mark.threads
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("shape", "axis"), LARGE)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "complex64"])
def test_large_arrays_on_threads(shape, axis, dtype, threads):
    """The results are those of one thread, which are NumPy's."""
    rng = np.random.default_rng(axis)
    a = (rng.normal(size=shape) * 3).astype(dtype)
    before = ndx.get_num_threads()
    ndx.set_num_threads(threads)
    try:
        for each in (a, np.asfortranarray(a), a[::-1]):
            wanted = np.cumulative_sum(each, axis=axis, dtype=dtype)
            x = ndx.asarray(each, copy=False)
            assert_same(ndx.cumulative_sum(x, axis=axis, dtype=dtype), wanted)
    finally:
        ndx.set_num_threads(before)


def test_it_writes_to_the_part_after_the_initial_value_only():
    with ndx.workspace("accumulating"):
        x = ndx.asarray(np.ones((400, 200)))
        found = ndx.cumulative_sum(x, axis=0, include_initial=True)
        assert float(ndx.sum(found[0])) == 0
        assert float(ndx.min(found[-1])) == 400


def test_of_a_stale_array():
    with ndx.workspace("accumulating"):
        x = ndx.ones(5)
    with pytest.raises(ndx.StaleArrayError):
        ndx.cumulative_sum(x)
